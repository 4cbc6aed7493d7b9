//! `cargo xtask bench`: how fast the machine could be, and how fast kernels, stages and predictions are on it.
//!
//! Wall time is what a robot waits for. Where other work shares the CPUs, CPU time per thread says more about the code: shares
//! of the roofline are of CPU time.

mod limits;
mod machine;
mod measure;
mod model;
mod ops;
mod report;

use std::path::PathBuf;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;

use crate::device::DeviceArgs;
use limits::Limits;
use report::Report;

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Model sizes, mini or n1.5
    #[arg(long, value_name = "CONFIG", default_value = "mini")]
    config: String,
    #[command(flatten)]
    device: DeviceArgs,
    /// Predictions that are timed
    #[arg(long, value_name = "N", default_value_t = 200)]
    reps: usize,
    /// Only results whose name contains this: limit/, op/, load/, stage/, predict/, host/ or memory/ begin the names
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Also load through a cache of packed weights in this folder, which is filled if need be
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and prints.
///
/// # Errors
/// If the device cannot be opened, the model not be loaded, or the file not be written.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let config = ModelConfig::preset(&args.config)?;
    let device = args.device.open()?;
    let mut report = Report::new(machine::describe(device.isa(), device.threads()), args.only.clone());
    report.print_head();
    let limits = Limits::measure(&device, &mut report)?;
    drop(device);
    ops::run(&config, &args.device, &limits, &mut report)?;
    model::run(args, &config, &limits, &mut report)?;
    if let Some(path) = &args.json {
        std::fs::write(path, report.to_json()?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
