//! `cargo xtask eval`: open-loop evaluation on the recorded episodes of a LeRobot dataset, as NVIDIA's `scripts/eval_policy.py` and
//! `gr00t/utils/eval.py` do it (GR00T N1.5): every `action_horizon` steps the policy sees the recorded observation, and its
//! actions are held against the recorded ones.

mod dataset;
mod open_loop;
mod plot;
mod show;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_host::embodiment::DataConfig;
use gr00t_host::encode::EncoderOptions;
use gr00t_host::image::ResolutionPolicy;

use self::dataset::Dataset;
use self::open_loop::{OpenLoop, Trajectory};
use self::show::Report;
use crate::device::{DeviceArgs, Model};
use crate::progress::Progress;
use crate::robot::{Robot, RobotArgs};
use crate::say::say;
use crate::subject::{Load, Subject};
use crate::weights::WeightsArgs;
use crate::{full_size, output};

/// Arguments of `eval`.
#[derive(Debug, clap::Args)]
pub(crate) struct EvalArgs {
    /// Dataset folder in LeRobot's format 2.0 or 2.1, with GR00T's meta/modality.json
    dataset: PathBuf,
    #[command(flatten)]
    weights: WeightsArgs,
    /// What runs the model
    #[arg(long, value_enum, default_value = "device")]
    model: Model,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    robot: RobotArgs,
    /// Episodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    trajs: usize,
    /// Place of the first episode in episodes.jsonl
    #[arg(long, value_name = "N", default_value_t = 0)]
    start_traj: usize,
    /// Most time steps of an episode that are evaluated
    #[arg(long, value_name = "N", default_value_t = 150)]
    steps: usize,
    /// Time steps from one prediction to the next; all that the data config predicts by default
    #[arg(long, value_name = "N")]
    action_horizon: Option<usize>,
    /// Denoising steps; the model's own number by default
    #[arg(long, value_name = "N")]
    denoising_steps: Option<usize>,
    /// Action keys, separated by commas; all of the data config by default
    #[arg(long, value_name = "KEY,…", value_delimiter = ',')]
    keys: Vec<String>,
    /// Seed of the first prediction's noise, drawn as torch.randn does; each later one takes the next
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What a frame of another size than the statistics' gets: strict (an error), resize or letterbox
    #[arg(long, value_name = "POLICY", default_value_t = ResolutionPolicy::Strict)]
    resolution: ResolutionPolicy,
    /// Draw every episode as PNG into this folder
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write all figures and trajectories to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Evaluates, prints and draws.
///
/// # Errors
/// If dataset, data config, statistics and weights do not fit together, or a video cannot be decoded.
pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    if let Some(folder) = &args.plot {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let name = args.robot.data_config.as_deref().with_context(|| {
        let names: Vec<&str> = DataConfig::builtin_names().collect();
        format!("--data-config is not given, wanted a TOML file or one of {}", names.join(", "))
    })?;
    let data_config = DataConfig::load(name)?;
    let dataset = Dataset::open(&args.dataset)?;
    let last = args.start_traj.saturating_add(args.trajs);
    if args.trajs == 0 || last > dataset.len() {
        bail!("episodes {} to {last}, exclusive, of {} in the dataset", args.start_traj, dataset.len());
    }

    let progress = Arc::new(Progress::new());
    let loaded = args.weights.load(&progress)?;
    let options = EncoderOptions { resolution: args.resolution, ..EncoderOptions::default() };
    let own = || dataset.metadata(&data_config).map(Some);
    let robot = Robot::bind(&args.robot, &loaded, data_config.clone(), own, options)?;
    let steps = args.denoising_steps.unwrap_or(robot.config.gr00t.action_head_cfg.num_inference_timesteps);
    let open_loop = OpenLoop {
        dataset: &dataset,
        robot: &robot,
        keys: open_loop::chosen(&args.keys, &data_config)?,
        steps: args.steps,
        action_horizon: open_loop::horizon(args.action_horizon, data_config.action_horizon)?,
        seed: args.seed,
    };
    let _alone = full_size::alone(&robot.config)?;
    let load = Load {
        config: &robot.config,
        source: &loaded.source,
        embodiment_id: robot.encoder.embodiment_id(),
        steps,
        cache: loaded.cache,
    };
    let subject = Subject::load(args.model, &args.device, load, &progress)?;
    let mut report = Report {
        dataset: args.dataset.display().to_string(),
        weights: loaded.description,
        ran_on: subject.describe(),
        data_config: robot.data_config.name.clone(),
        statistics: robot.metadata_from.clone(),
        denoising_steps: steps,
        action_horizon: open_loop.action_horizon,
        trajectories: Vec::new(),
    };
    report.print_head(robot.warning.as_deref());
    for place in args.start_traj..last {
        let trajectory = open_loop.evaluate(place, &subject, &progress)?;
        show::print(&trajectory);
        draw(args, &dataset, &trajectory)?;
        report.trajectories.push(trajectory);
    }
    drop(progress);
    report.print_end();
    if let Some(path) = &args.json {
        output::write(path, &serde_json::to_vec_pretty(&report).context("report")?)?;
    }
    Ok(())
}

fn draw(args: &EvalArgs, dataset: &Dataset, trajectory: &Trajectory) -> Result<()> {
    let Some(folder) = &args.plot else { return Ok(()) };
    let path = folder.join(format!("episode_{:06}.png", trajectory.episode));
    plot::write(trajectory, dataset.fps(), &path)?;
    say!("picture: {}", path.display());
    Ok(())
}
