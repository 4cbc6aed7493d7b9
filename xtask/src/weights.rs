//! The weights that a command is given, opened with all that belongs to them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, TensorSource, WeightsSpec};
use gr00t_host::embodiment::Metadata;
use gr00t_host::prompt::Tokenizer;
use gr00t_model::PackedCache;

use crate::progress::Progress;

/// Options of every command that loads weights.
#[derive(Debug, clap::Args)]
pub(crate) struct WeightsArgs {
    /// synthetic or synthetic:SEED, a folder, a safetensors file, or a repository owner/name@revision
    #[arg(long, value_name = "WEIGHTS", default_value = "synthetic")]
    pub(crate) weights: String,
    /// Model sizes, mini or n1.5, where the weights do not bring their own config.json; mini by default
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
    /// Fetch a repository that is not in the local cache
    #[arg(long)]
    pub(crate) download: bool,
}

/// Weights, checked against their config.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Sizes.
    pub(crate) config: ModelConfig,
    /// Tensors.
    pub(crate) source: Arc<dyn TensorSource>,
    /// The checkpoint's own statistics.
    pub(crate) metadata: Option<Metadata>,
    /// The checkpoint's tokenizer, else the built-in one.
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// Whether the weights are made up.
    pub(crate) is_synthetic: bool,
    /// Where weights packed for the device are kept, unless `GR00T_TT_CACHE` is `off`.
    pub(crate) cache: Option<PackedCache>,
    /// One line on where they come from.
    pub(crate) description: String,
}

impl WeightsArgs {
    /// Opens and validates.
    ///
    /// # Errors
    /// If the weights cannot be found or opened, or differ from their config; all differences come in one message.
    pub(crate) fn load(&self, progress: &Progress) -> Result<Loaded> {
        let (checkpoint, is_synthetic) = self.open(progress)?;
        checkpoint.validate()?;
        let metadata = checkpoint.metadata_path().map(Metadata::from_file).transpose()?;
        let tokenizer = match checkpoint.tokenizer_path() {
            Some(path) => Tokenizer::from_file(path)?,
            None => Tokenizer::qwen2(),
        };
        Ok(Loaded {
            config: checkpoint.config().clone(),
            source: Arc::clone(checkpoint.source()),
            metadata,
            tokenizer: Arc::new(tokenizer),
            is_synthetic,
            cache: PackedCache::from_env(&checkpoint)?,
            description: checkpoint.source().describe(),
        })
    }

    /// Opens without looking at the tensors' shapes. The flag says whether the weights are made up.
    pub(crate) fn open(&self, progress: &Progress) -> Result<(Checkpoint, bool)> {
        let spec: WeightsSpec = self.weights.parse()?;
        let is_synthetic = matches!(spec, WeightsSpec::Synthetic { .. });
        let downloading = |file: &str, done: u64, total: u64| progress.set(file, done, total);
        let mut options = OpenOptions::new();
        if self.download {
            options = options.download(&downloading);
        }
        if let Some(name) = &self.config {
            options = options.config(ModelConfig::preset(name)?);
        } else if is_synthetic {
            options = options.config(ModelConfig::mini());
        }
        let opened = Checkpoint::open(&spec, &options);
        let checkpoint = match spec {
            WeightsSpec::Hub(_) if !self.download => {
                opened.context("not opened without --download, which fetches what is missing")?
            }
            _ => opened?,
        };
        Ok((checkpoint, is_synthetic))
    }
}

/// The file or folder that a golden case names, in the case's own sizes.
pub(crate) fn open_of_case(path: &Path, config: &ModelConfig) -> Result<Arc<dyn TensorSource>> {
    let options = OpenOptions::new().config(config.clone());
    let checkpoint = Checkpoint::open(&WeightsSpec::Path(path.to_path_buf()), &options)?;
    checkpoint.validate()?;
    Ok(Arc::clone(checkpoint.source()))
}
