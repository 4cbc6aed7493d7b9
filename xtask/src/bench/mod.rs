//! `cargo xtask bench`: how fast the machine could be, and how fast kernels, stages and predictions are on it.
//!
//! Wall time is what a robot waits for. Where other work shares the CPUs, CPU time per thread says more about the code: shares
//! of the roofline are of CPU time.

mod card;
mod compare;
mod html;
mod limits;
mod machine;
mod measure;
mod model;
mod ops;
mod predictions;
mod readme;
mod report;
mod results;
mod scale;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;

use crate::device::{DeviceArgs, Kind};
use crate::output;
use crate::say::say;
use limits::Limits;
use report::Report;
use results::Results;

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
    /// Only results whose name contains this: limit/, op/, load/, device/, stage/, predict/, host/, memory/, scale/ or server/ begin the names
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// No results whose name begins with this, such as server/, which builds and starts the server
    #[arg(long, value_name = "BEGIN")]
    without: Option<String>,
    /// Also load through a cache of packed weights in this folder, which is filled if need be
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots, index.html, to this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Fail if a result is more than --ratio times worse than in this file of results
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// How many times worse than the baseline a result may be
    #[arg(long, value_name = "RATIO", default_value_t = 1.15)]
    ratio: f64,
    /// Take the results of this file and measure nothing; for --report and --check
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "only", "without", "cache"])]
    from: Option<PathBuf>,
    /// Show two files of results side by side and measure nothing
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["from", "json", "report", "check"])]
    compare: Option<Vec<PathBuf>>,
    /// Write this file's figures into the README, where a block names it, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "json", "report", "check", "compare"])]
    readme: Option<PathBuf>,
}

/// Measures and prints, or shows what was measured before.
///
/// # Errors
/// If the device cannot be opened, the model not be loaded, a file not be read or written, or a result is worse than it may be.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    if let Some([a, b]) = args.compare.as_deref() {
        return compare::print(&Results::read(a)?, &Results::read(b)?);
    }
    if let Some(path) = &args.readme {
        return readme::write(path);
    }
    let baseline = args.check.as_deref().map(Results::read).transpose()?;
    let (results, served) = match &args.from {
        Some(path) => (Results::read(path)?, Ok(())),
        None => measured(args)?,
    };
    if let Some(folder) = &args.report {
        say!("report: {}", html::write(&results, folder)?.display());
    }
    served?;
    match baseline {
        Some(baseline) => compare::check(&baseline, &results, args.ratio),
        None => Ok(()),
    }
}

/// Measures and prints, and writes the file asked for. The server comes last; what was measured before it fails is kept, and its
/// error beside it.
fn measured(args: &BenchArgs) -> Result<(Results, Result<()>)> {
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let config = ModelConfig::preset(&args.config)?;
    if args.device.device == Kind::Metal {
        return Ok((card::measured(args, &config)?, Ok(())));
    }
    let device = args.device.open()?;
    let machine = machine::of_cpu(device.isa(), device.threads());
    let mut report = Report::new(machine, args.only.clone(), args.without.clone());
    report.print_head();
    let limits = Limits::measure(&device, &mut report)?;
    drop(device);
    ops::run(&config, &args.device, &limits, &mut report)?;
    model::run(args, &config, &limits, &mut report)?;
    let served = server::run(args, &mut report).context("server/, the last of the results");
    if let Some(path) = &args.json {
        output::write(path, &report.to_json()?)?;
    }
    Ok((report.results().clone(), served))
}
