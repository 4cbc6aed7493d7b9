//! `cargo xtask synth`: writes procedural weights as a checkpoint folder.

use std::path::PathBuf;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::write_synthetic;
use gr00t_host::embodiment::{DataConfig, Metadata, synthetic_metadata};

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::say::say;

/// Arguments of `synth`.
#[derive(Debug, clap::Args)]
pub(crate) struct SynthArgs {
    /// Model sizes: mini or n1.5
    #[arg(long, value_name = "CONFIG", default_value = "mini")]
    config: String,
    /// Seed of the weights
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// The folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Largest shard
    #[arg(long, value_name = "BYTES", default_value_t = 5_000_000_000, allow_negative_numbers = true)]
    shard_bytes: u64,
    /// Built-in data config whose made-up statistics the folder gets
    #[arg(long, value_name = "NAME", default_values = ["fourier_gr1_arms_only", "oxe_droid", "agibot_genie1"])]
    data_config: Vec<String>,
}

/// Writes the folder.
///
/// # Errors
/// If a name is unknown, the folder exists, it cannot be written, or the work is interrupted; then nothing is left.
pub(crate) fn run(args: &SynthArgs) -> Result<()> {
    let config = ModelConfig::preset(&args.config)?;
    let mut metadata = Metadata::default();
    for name in &args.data_config {
        metadata.merge(synthetic_metadata(&DataConfig::builtin(name)?)?);
    }
    let metadata = serde_json::to_string_pretty(&metadata).context("metadata")?;
    let progress = Progress::new();
    let interrupt = Interrupt::listen()?;
    let mut bytes = 0;
    write_synthetic(&args.out, &config, args.seed, &metadata, args.shard_bytes, &mut |done, total| {
        bytes = total;
        progress.set("writing weights", done, total);
        interrupt.go_on()
    })?;
    drop(progress);
    say!("{}: {bytes} bytes of weights, seed {}", args.out.display(), args.seed);
    Ok(())
}
