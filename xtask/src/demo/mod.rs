//! `cargo xtask demo`: a prediction on the observation that ships with the project, shown as a table and a picture.

mod plot;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use gr00t_host::image::ResolutionPolicy;
use gr00t_host::observation::ObservationFile;

use crate::device::{DeviceArgs, Model};
use crate::output;
use crate::picture;
use crate::predict::{self, NoiseChoice, Request};
use crate::progress::Progress;
use crate::robot::RobotArgs;
use crate::say::say;
use crate::weights::WeightsArgs;
use crate::workspace;

/// The demo's observation: a rendered scene and made-up joint angles.
pub(crate) const OBSERVATION: &str = "gr00t-serve/assets/demo/observation.json";

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Exit after showing the result
    #[arg(long)]
    once: bool,
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value_os_t = default_picture())]
    plot: PathBuf,
}

fn default_picture() -> PathBuf {
    workspace::root().join("out/demo.png")
}

/// Predicts, prints the table and writes the picture.
///
/// # Errors
/// If the weights cannot be had or the picture cannot be written.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    picture::create_folder_of(&args.plot)?;
    output::check(&args.plot)?;
    let progress = Arc::new(Progress::new());
    let file = ObservationFile::read(workspace::root().join(OBSERVATION))?;
    let request = Request {
        weights: &args.weights,
        model: Model::Device,
        device: &args.device,
        file: &file,
        robot: &RobotArgs::default(),
        noise: NoiseChoice::Seed(0),
        steps: None,
        resolution: ResolutionPolicy::Strict,
    };
    let prediction = predict::predict(&request, &progress)?;
    drop(progress);
    predict::print_head(&prediction);
    predict::print_actions(&prediction.chunk);
    predict::print_timings(&prediction);
    let title = format!("{}: {}", prediction.data_config, file.instruction.as_deref().unwrap_or_default());
    plot::write(&prediction.chunk, &title, &args.plot)?;
    say!("\npicture: {}", args.plot.display());
    if !args.once {
        say!("to serve the same model: cargo run -p gr00t-serve -- --weights synthetic --config mini");
    }
    Ok(())
}
