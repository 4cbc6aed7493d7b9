//! `cargo xtask predict`: one observation in, one action chunk out, through the fp32 reference or a device.

mod noise;
mod run;
mod show;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::image::ResolutionPolicy;
use gr00t_host::observation::ObservationFile;

use noise::NoiseChoice;
use run::{Prediction, Request, predict};
use show::{print_actions, print_head, print_timings};

use crate::device::{DeviceArgs, Model};
use crate::output;
use crate::progress::Progress;
use crate::robot::RobotArgs;
use crate::weights::WeightsArgs;

/// Arguments of `predict`.
#[derive(Debug, clap::Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    /// What runs the model
    #[arg(long, value_enum, default_value = "reference")]
    model: Model,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    robot: RobotArgs,
    /// Observation file, of the form of golden/README.md
    #[arg(long, value_name = "FILE")]
    observation: PathBuf,
    /// Seed of the initial noise, drawn as torch.randn does
    #[arg(long, default_value_t = 0, conflicts_with = "noise", allow_negative_numbers = true)]
    seed: u64,
    /// JSON file with the initial noise: horizon rows of action_dim numbers
    #[arg(long, value_name = "FILE")]
    noise: Option<PathBuf>,
    /// Denoising steps; the model's own number by default
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<usize>,
    /// What an image of another size than the metadata's gets: strict (an error), resize or letterbox
    #[arg(long, value_name = "POLICY", default_value_t = ResolutionPolicy::Strict)]
    resolution: ResolutionPolicy,
    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Predicts and prints.
///
/// # Errors
/// If weights, observation, statistics and data config do not fit together.
pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let progress = Arc::new(Progress::new());
    let file = ObservationFile::read(&args.observation)?;
    let prediction = predict(
        &Request {
            weights: &args.weights,
            model: args.model,
            device: &args.device,
            file: &file,
            robot: &args.robot,
            noise: match &args.noise {
                Some(path) => NoiseChoice::from_file(path)?,
                None => NoiseChoice::Seed(args.seed),
            },
            steps: args.steps,
            resolution: args.resolution,
        },
        &progress,
    )?;
    drop(progress);
    print_head(&prediction);
    print_actions(&prediction.chunk);
    print_timings(&prediction);
    if let Some(path) = &args.json {
        let text = serde_json::to_vec_pretty(&show::as_json(&prediction)).context("result")?;
        output::write(path, &text)?;
    }
    Ok(())
}
