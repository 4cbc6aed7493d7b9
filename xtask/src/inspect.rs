//! `cargo xtask inspect`: what weights consist of, and whether they fit their config.

use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::OneLine;
use gr00t_host::checkpoint::PartSize;
use gr00t_host::embodiment::{EmbodimentMetadata, KeyStatistics, Metadata};
use gr00t_host::prompt::Tokenizer;
use tt_ops::Device;

use crate::device::DeviceArgs;
use crate::full_size;
use crate::progress::Progress;
use crate::say::say;
use crate::weights::WeightsArgs;

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct InspectArgs {
    /// synthetic or synthetic:SEED, a folder, a safetensors file, or a repository owner/name@revision
    weights: String,
    /// Model sizes, mini or n1.5, where the weights do not bring their own config.json
    #[arg(long, value_name = "CONFIG")]
    config: Option<String>,
    /// Fetch a repository that is not in the local cache
    #[arg(long)]
    download: bool,
    /// List every tensor
    #[arg(long)]
    tensors: bool,
    /// Read every weight and refuse NaN and infinities; name actions that the statistics make constant
    #[arg(long)]
    check: bool,
    /// Load them on the software device too, and list what lies on it per part, role and data type
    #[arg(long)]
    on_device: bool,
    /// Slot of the category-specific weights that goes on the device
    #[arg(long, value_name = "SLOT", default_value_t = 24)]
    embodiment: usize,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Prints the inventory, then the differences to the config.
///
/// # Errors
/// If the weights cannot be opened, differ from their config, or hold values that are not finite, or if a file that
/// belongs to them cannot be read.
pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let progress = Arc::new(Progress::new());
    let weights =
        WeightsArgs { weights: args.weights.clone(), config: args.config.clone(), download: args.download };
    let (checkpoint, _) = weights.open(&progress)?;
    say!("{}", checkpoint.source().describe());
    let parts = checkpoint.inventory();
    if args.tensors {
        for name in checkpoint.source().names() {
            if let Some(info) = checkpoint.source().info(&name) {
                say!("  {:<6} {:?} {name}", info.dtype.name(), info.shape);
            }
        }
    }
    say!("{}", table(&parts));
    let metadata = checkpoint.metadata_path().map(Metadata::from_file).transpose()?;
    checkpoint.tokenizer_path().map(Tokenizer::from_file).transpose()?;
    say!("metadata.json: {}", metadata.as_ref().map_or_else(|| "no".into(), embodiments));
    say!("tokenizer.json: {}", if checkpoint.tokenizer_path().is_some() { "yes" } else { "no" });
    if args.check {
        let report = checkpoint.check(&|done, total| progress.set("reading weights", done, total))?;
        say!("checked {} tensors, {} elements: all finite", report.tensors, report.elements);
        for warning in metadata.iter().flat_map(constant_actions) {
            say!("warning: {}", OneLine(warning));
        }
    }
    let validation = checkpoint.validate().context("the weights differ from their config")?;
    for warning in validation.warnings {
        say!("warning: {warning}");
    }
    say!("fits its config");
    if args.on_device {
        let _alone = full_size::alone(checkpoint.config())?;
        let model =
            args.device.load(checkpoint.config(), checkpoint.source(), args.embodiment, None, &progress)?;
        say!("\non {}, {}", model.device().describe(), model.dtype_policy());
        say!("{}", model.structure());
    }
    Ok(())
}

/// The embodiments that there are statistics of.
fn embodiments(metadata: &Metadata) -> String {
    let tags: Vec<String> = metadata.embodiments.keys().map(|tag| OneLine(tag).to_string()).collect();
    tags.join(", ")
}

/// One line per action key whose statistics have no range: it comes out the same whatever the model says, which is
/// right for a joint that never moved in training and the sign of damaged statistics otherwise.
fn constant_actions(metadata: &Metadata) -> Vec<String> {
    let of = |(tag, embodiment): (&String, &EmbodimentMetadata)| {
        let constant = |(_, key): &(&String, &KeyStatistics)| !key.max.is_empty() && key.max == key.min;
        let keys = embodiment.statistics.action.iter().filter(constant);
        keys.map(|(key, _)| format!("{tag}: the statistics of action {key} have no range, so it is constant"))
            .collect::<Vec<_>>()
    };
    metadata.embodiments.iter().flat_map(of).collect()
}

/// One line per part and two sums.
fn table(parts: &[PartSize]) -> String {
    let mut lines = vec![format!(
        "  {:<16} {:>7} {:>15} {:>15}  {:<12} {}",
        "part", "tensors", "elements", "bytes", "dtype", "needed"
    )];
    for part in parts {
        let dtypes: Vec<&str> = part.dtypes.iter().map(|d| d.name()).collect();
        let name = part.part.map_or("unknown", |p| p.name());
        let needed = if part.needed { "yes" } else { "no" };
        lines.push(format!(
            "  {name:<16} {:>7} {:>15} {:>15}  {:<12} {needed}",
            part.tensors,
            part.elements,
            part.bytes,
            dtypes.join(",")
        ));
    }
    let all = sum(parts.iter());
    let needed = sum(parts.iter().filter(|p| p.needed));
    for (name, (tensors, elements, bytes)) in [("all", all), ("needed", needed)] {
        lines.push(format!("  {name:<16} {tensors:>7} {elements:>15} {bytes:>15}"));
    }
    lines.join("\n")
}

fn sum<'a>(parts: impl Iterator<Item = &'a PartSize>) -> (usize, u64, u64) {
    parts.fold((0, 0, 0), |(t, e, b), p| (t + p.tensors, e + p.elements, b + p.bytes))
}
