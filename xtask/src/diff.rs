//! `cargo xtask diff`: one case on two devices, op by op; names the first op of each stage that diverges.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_model::{DtypePolicy, RunOptions, diff};
use serde::Serialize;
use tt_ops::Device;
use tt_ops::diff::Report;
use tt_ops::soft::Isa;

use crate::device::{self, DeviceArgs};
use crate::full_size;
use crate::output;
use crate::progress::Progress;
use crate::say::say;
use crate::verify::OpenedCase;

/// Activations pass from op to op in bf16, so that its roundings are in every later result, those in f32 too, and add up along a stage.
const STAGE_OF_BF16: f64 = 1.0 / 64.0;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Case folder (with a case.json): weights and inputs
    case: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
    /// The other device's instruction set level; the same by default
    #[arg(long, value_name = "LEVEL", value_parser = device::isa)]
    against_isa: Option<Isa>,
    /// The other device's threads; the same by default
    #[arg(long, value_name = "N")]
    against_threads: Option<usize>,
    /// The other device's policy; the same by default
    #[arg(long, value_name = "POLICY", value_parser = device::policy)]
    against_policy: Option<DtypePolicy>,
    /// Relative root mean square that an op may be apart by; 2^-6 by default
    #[arg(long, value_name = "LIMIT", default_value_t = STAGE_OF_BF16)]
    limit: f64,
    /// List every op, not only the first that diverges
    #[arg(long)]
    all: bool,
    /// Write every op of every stage to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One stage of the JSON file.
#[derive(Debug, Serialize)]
struct StageReport {
    stage: &'static str,
    #[serde(flatten)]
    report: Report,
}

/// Runs both and compares.
///
/// # Errors
/// If a device cannot be opened, the case cannot be read, or an op diverges.
pub(crate) fn run(args: &DiffArgs) -> Result<()> {
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let progress = Arc::new(Progress::new());
    let case = OpenedCase::read(&args.case)?;
    let _alone = full_size::alone(&case.config)?;
    let against = DeviceArgs {
        isa: args.against_isa.or(args.device.isa),
        threads: args.against_threads.or(args.device.threads),
        device: args.device.device,
        policy: args.against_policy.unwrap_or(args.device.policy),
        checked: args.device.checked,
    };
    let load = |device: &DeviceArgs| {
        device.load(&case.config, &case.source, case.inputs.embodiment_id, None, &progress)
    };
    let (wanted, got) = (load(&against)?, load(&args.device)?);
    for (name, model) in [("wanted", &wanted), ("got", &got)] {
        say!("{name:<7} {}, {}", model.device().describe(), model.dtype_policy());
    }
    let options = RunOptions::new().denoising_steps(case.steps);
    let reports = diff(&wanted, &got, &case.inputs, &options, |_| args.limit)?;
    drop(progress);

    let mut diverging = 0;
    for (stage, report) in &reports {
        let equal = report.ops.iter().filter(|op| op.difference.max_abs == 0.0).count();
        say!("{stage}: {} ops, {equal} of them equal", report.ops.len());
        if args.all {
            say!("{report}");
        }
        match report.first() {
            Some(first) => {
                diverging += 1;
                let first = Report { ops: vec![first.clone()] };
                say!("first that diverges:\n{first}");
            }
            None => say!("none diverges"),
        }
    }
    if let Some(path) = &args.json {
        let stages: Vec<StageReport> =
            reports.into_iter().map(|(stage, report)| StageReport { stage: stage.name(), report }).collect();
        let text = serde_json::to_vec_pretty(&stages).context("report")?;
        output::write(path, &text)?;
    }
    if diverging > 0 {
        bail!("{diverging} stages diverge");
    }
    Ok(())
}
