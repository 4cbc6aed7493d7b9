//! `cargo xtask predict`: one observation in, one action chunk out, through the fp32 reference or a device.

mod run;
mod show;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_host::noise::Noise;
use gr00t_host::observation::ObservationFile;

pub(crate) use run::{Prediction, Request, predict};
pub(crate) use show::{print_actions, print_head, print_timings};

use crate::device::{DeviceArgs, Model};
use crate::progress::Progress;
use crate::weights::WeightsArgs;

/// Largest noise file that is read.
const MAX_NOISE_BYTES: u64 = 64 << 20;

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
    /// Statistics in the form of a checkpoint's experiment_cfg/metadata.json
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Data config by name, or a TOML file; the observation's own by default
    #[arg(long, value_name = "NAME|FILE")]
    data_config: Option<String>,
    /// Observation file, of the form of golden/README.md
    #[arg(long, value_name = "FILE")]
    observation: PathBuf,
    /// Seed of the initial noise, drawn as torch.randn does
    #[arg(long, default_value_t = 0, conflicts_with = "noise")]
    seed: u64,
    /// JSON file with the initial noise: horizon rows of action_dim numbers
    #[arg(long, value_name = "FILE")]
    noise: Option<PathBuf>,
    /// Denoising steps; the model's own number by default
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Predicts and prints.
///
/// # Errors
/// If weights, observation, statistics and data config do not fit together.
pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    let progress = Arc::new(Progress::new());
    let file = ObservationFile::read(&args.observation)?;
    let prediction = predict(
        &Request {
            weights: &args.weights,
            model: args.model,
            device: &args.device,
            file: &file,
            metadata: args.metadata.as_deref(),
            data_config: args.data_config.as_deref(),
            noise: match &args.noise {
                Some(path) => Noise::Explicit(read_noise(path)?),
                None => Noise::Seed(args.seed),
            },
            steps: args.steps,
        },
        &progress,
    )?;
    drop(progress);
    print_head(&prediction);
    print_actions(&prediction.chunk);
    print_timings(&prediction);
    if let Some(path) = &args.json {
        let text = serde_json::to_vec_pretty(&show::as_json(&prediction)).context("result")?;
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// All numbers of a JSON file of nested arrays, in order.
fn read_noise(path: &std::path::Path) -> Result<Vec<f32>> {
    let shown = || path.display().to_string();
    let size = std::fs::metadata(path).with_context(shown)?.len();
    if size > MAX_NOISE_BYTES {
        bail!("{}: {size} bytes, at most {MAX_NOISE_BYTES} expected", path.display());
    }
    let value = serde_json::from_slice(&std::fs::read(path).with_context(shown)?).with_context(shown)?;
    let mut numbers = Vec::new();
    flatten(&value, &mut numbers).with_context(shown)?;
    Ok(numbers)
}

fn flatten(value: &serde_json::Value, numbers: &mut Vec<f32>) -> Result<()> {
    match value {
        serde_json::Value::Array(items) => items.iter().try_for_each(|item| flatten(item, numbers)),
        serde_json::Value::Number(number) => {
            numbers.push(number.as_f64().context("a number beyond f64")? as f32);
            Ok(())
        }
        other => bail!("{other} where a number was wanted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_noise_is_read_row_by_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("noise.json");
        std::fs::write(&path, "[[0.5, -1], [2, 3e-1]]").unwrap();
        assert_eq!(read_noise(&path).unwrap(), [0.5, -1.0, 2.0, 0.3]);
    }

    #[test]
    fn noise_that_is_not_numbers_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("noise.json");
        std::fs::write(&path, r#"[["a"]]"#).unwrap();
        assert!(format!("{:#}", read_noise(&path).unwrap_err()).contains("noise.json"));
    }
}
