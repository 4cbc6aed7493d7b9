//! `cargo xtask inspect`: what weights consist of, and whether they fit their config.

use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::checkpoint::PartSize;
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
    /// Read every weight and refuse NaN and infinities
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
/// If the weights cannot be opened, differ from their config, or hold values that are not finite.
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
    say!(
        "metadata.json: {}, tokenizer.json: {}",
        present(checkpoint.metadata_path().is_some()),
        present(checkpoint.tokenizer_path().is_some())
    );
    if args.check {
        let report = checkpoint.check(&|done, total| progress.set("reading weights", done, total))?;
        say!("checked {} tensors, {} elements: all finite", report.tensors, report.elements);
    }
    let validation = checkpoint.validate().context("the weights differ from their config")?;
    for warning in validation.warnings {
        say!("warning: {warning}");
    }
    say!("fits its config");
    if args.on_device {
        let _alone = full_size::alone(checkpoint.config())?;
        let model = args.device.load(checkpoint.config(), checkpoint.source(), args.embodiment, &progress)?;
        say!("\non {}, {}", model.device().describe(), model.dtype_policy());
        say!("{}", model.structure());
    }
    Ok(())
}

fn present(is_present: bool) -> &'static str {
    if is_present { "yes" } else { "no" }
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
