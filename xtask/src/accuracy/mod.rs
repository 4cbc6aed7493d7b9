//! `cargo xtask accuracy`: what each dtype policy costs in exactness, and what it saves in bytes and time. Every stage and every
//! joint is held against the fp32 reference on the same weights, inputs and noise.

mod figures;
mod observations;
mod plot;
mod show;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_model::{DtypePolicy, Part};

use self::figures::{PartBytes, PolicyFigures, Recorded, Report};
use self::observations::Case;
use crate::device::{DeviceArgs, Model};
use crate::output;
use crate::picture;
use crate::progress::Progress;
use crate::robot::RobotArgs;
use crate::say::say;
use crate::subject::{Load, Subject};
use crate::weights::{Loaded, WeightsArgs};
use crate::{device, full_size};

/// Arguments of `accuracy`.
#[derive(Debug, clap::Args)]
pub(crate) struct AccuracyArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    #[command(flatten)]
    robot: RobotArgs,
    /// Dtype policies, separated by commas
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', value_parser = device::policy,
          default_values_t = [DtypePolicy::Bf16, DtypePolicy::MixedDit, DtypePolicy::Mixed])]
    policies: Vec<DtypePolicy>,
    /// Instruction set level: portable, avx2, avx512 or amx; the best there is by default
    #[arg(long, value_name = "LEVEL", value_parser = device::isa)]
    isa: Option<tt_ops::soft::Isa>,
    /// Threads of the software device; one per CPU by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Observation files, instead of the demo's and variations of it
    #[arg(long = "observation", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// How many observations, the demo's and variations of it
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "files",
          value_parser = clap::value_parser!(u16).range(1..))]
    observations: u16,
    /// Denoising steps; the model's own number by default
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Predictions that are timed per observation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    reps: u16,
    /// List every stage, not only those that leave a part of the model
    #[arg(long)]
    all: bool,
    /// Draw the figures to this file as PNG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the figures of every stage to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures, prints and draws.
///
/// # Errors
/// If weights or observations cannot be had, a stage is missing, or a gated stage correlates less than its policy must.
pub(crate) fn run(args: &AccuracyArgs) -> Result<()> {
    if let Some(path) = &args.plot {
        picture::create_folder_of(path)?;
    }
    for path in args.plot.iter().chain(&args.json) {
        output::check(path)?;
    }
    let progress = Arc::new(Progress::new());
    let loaded = args.weights.load(&progress)?;
    let (config, cases) = if args.files.is_empty() {
        observations::made(usize::from(args.observations), &args.robot, &loaded)?
    } else {
        observations::read(&args.files, &args.robot, &loaded)?
    };
    let steps = args.steps.unwrap_or(config.gr00t.action_head_cfg.num_inference_timesteps);
    let embodiment_id = cases.first().context("no observation")?.inputs.embodiment_id;
    let _alone = full_size::alone(&config)?;

    let load = |model, device: &DeviceArgs| {
        let load = Load { config: &config, source: &loaded.source, embodiment_id, steps, cache: None };
        Subject::load(model, device, load, &progress)
    };
    let reference = load(Model::Reference, &DeviceArgs::default())?;
    let wanted: Vec<Recorded> =
        cases.iter().map(|case| Recorded::of(&reference, &case.inputs)).collect::<Result<_>>()?;
    drop(reference);

    let mut report = Report {
        weights: loaded.description.clone(),
        observations: cases.iter().map(|case| case.name.clone()).collect(),
        steps,
        policies: Vec::new(),
    };
    for &policy in &args.policies {
        let device = DeviceArgs { policy, isa: args.isa, threads: args.threads, ..DeviceArgs::default() };
        let subject = load(Model::Device, &device)?;
        report.policies.push(measure(policy, &subject, &cases, &wanted, usize::from(args.reps))?);
    }
    drop(progress);
    finish(args, &report, &loaded)
}

/// Prints, draws and writes; fails if a policy is not as exact as it must be.
fn finish(args: &AccuracyArgs, report: &Report, loaded: &Loaded) -> Result<()> {
    show::print(report, args.all);
    if let Some(path) = &args.plot {
        plot::write(report, &format!("accuracy against the fp32 reference: {}", loaded.description), path)?;
        say!("\npicture: {}", path.display());
    }
    if let Some(path) = &args.json {
        output::write(path, &serde_json::to_vec_pretty(report).context("report")?)?;
    }
    let poor: Vec<String> = report.policies.iter().filter_map(PolicyFigures::below_gate).collect();
    if poor.is_empty() { Ok(()) } else { bail!("{}", poor.join("; ")) }
}

/// One policy's figures over all observations.
fn measure(
    policy: DtypePolicy,
    subject: &Subject,
    cases: &[Case],
    wanted: &[Recorded],
    reps: usize,
) -> Result<PolicyFigures> {
    let mut figures = PolicyFigures::new(policy, subject.describe());
    for (case, wanted) in cases.iter().zip(wanted) {
        let got = Recorded::of(subject, &case.inputs)?;
        figures.add(case, &got, wanted).with_context(|| format!("{policy}, observation {}", case.name))?;
        // Captured without taps now, so that what is timed is a replay like every later request's.
        subject.predict(&case.inputs)?;
        for _ in 0..reps {
            figures.add_time(subject.predict(&case.inputs)?.1);
        }
    }
    if let Some(model) = subject.on_device() {
        let structure = model.structure();
        figures.parts = Part::ALL
            .map(|part| PartBytes {
                part: part.name(),
                dtype: policy.weights(part).to_string(),
                bytes: structure.classes.iter().filter(|c| c.part == part).map(|c| c.bytes).sum(),
            })
            .into();
    }
    Ok(figures)
}
