//! [`Checkpoint`]: weights found, opened and recognised, with the files that belong to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::integrity::{hashed_files, verify_hashes};
use super::kind::{ConfigKind, SINGLE_FILE, config_kind, refuse_lora_tensors, refuse_weights_of};
use super::renamed::LeRobotNames;
use super::shards::absence;
use super::weight_files::{WeightFile, weight_files};
use super::{
    CheckReport, DownloadProgress, Hub, HubRepo, PartSize, Procedural, SafetensorsFile, ShardedSafetensors,
    TensorSource, Validation, Weights, WeightsSpec, check_finite, inventory, validate,
};
use crate::{Error, ModelConfig, Result};

/// NVIDIA's model configuration in a checkpoint folder.
pub const CONFIG_FILE: &str = "config.json";
/// The Eagle backbone's configuration beside it; N1.5's sizes where it is absent, as in NVIDIA's checkpoints.
pub const EAGLE_CONFIG_FILE: &str = "eagle_config.json";
/// Statistics and modalities of the embodiments.
pub const METADATA_FILE: &str = "experiment_cfg/metadata.json";
/// A tokenizer beside the weights.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// How [`Checkpoint::open`] goes about it.
#[derive(Default)]
#[must_use]
pub struct OpenOptions<'a> {
    config: Option<ModelConfig>,
    hub: Option<Hub>,
    download: Option<DownloadProgress<'a>>,
}

impl std::fmt::Debug for OpenOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("config", &self.config)
            .field("hub", &self.hub)
            .field("download", &self.download.is_some())
            .finish()
    }
}

impl<'a> OpenOptions<'a> {
    /// The config of the files (N1.5 for synthetic weights), the hub of the environment, no network.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses `config` instead of the one beside the weights.
    pub fn config(mut self, config: ModelConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Uses `hub` instead of the environment's.
    pub fn hub(mut self, hub: Hub) -> Self {
        self.hub = Some(hub);
        self
    }

    /// Allows a repository that the cache lacks to be fetched.
    pub fn download(mut self, progress: DownloadProgress<'a>) -> Self {
        self.download = Some(progress);
        self
    }

    fn fetch(&self, repo: &HubRepo) -> Result<PathBuf> {
        let hub = self.hub.clone().map_or_else(Hub::from_env, Ok)?;
        match self.download {
            Some(progress) => hub.download(repo, progress),
            None => hub.locate(repo),
        }
    }
}

/// Weights, opened, with their configuration.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    config: ModelConfig,
    source: Arc<dyn TensorSource>,
    dir: Option<PathBuf>,
}

impl Checkpoint {
    /// Finds and opens what `spec` names. Reads configs and headers, no tensor data.
    ///
    /// # Errors
    /// [`Error::Hub`], [`Error::Io`], [`Error::Parse`], [`Error::Config`]; [`Error::Checkpoint`] that says what is
    /// incomplete or damaged, or which kind of checkpoint it is instead of GR00T N1.5 (LoRA adapter, N1, N1.6,
    /// N1.7, pickles).
    pub fn open(spec: &WeightsSpec, options: &OpenOptions<'_>) -> Result<Self> {
        match spec {
            WeightsSpec::Synthetic { seed } => {
                let config = options.config.clone().unwrap_or_else(ModelConfig::n1_5);
                let source = Arc::new(Procedural::new(&config, *seed));
                Ok(Self { config, source, dir: None })
            }
            WeightsSpec::Path(path) if path.is_dir() => Self::open_dir(path, options),
            WeightsSpec::Path(path) if path.exists() => Self::open_file(path, options),
            WeightsSpec::Path(path) => {
                let what = format!("{}; wanted a folder, a file, owner/name or synthetic", absence(path));
                Err(Error::checkpoint(path, what))
            }
            WeightsSpec::Hub(repo) => Self::open_dir(&options.fetch(repo)?, options),
        }
    }

    fn open_dir(dir: &Path, options: &OpenOptions<'_>) -> Result<Self> {
        let refused = |what| Error::checkpoint(dir, what);
        // The adapter's files say more about the folder than its config does, and the config more than its weights.
        let weights = refuse_weights_of(dir);
        let config = match &options.config {
            Some(config) => config.clone(),
            None => config_of(dir, weights.as_ref().err())?,
        };
        weights.map_err(refused)?;
        let single = dir.join(SINGLE_FILE);
        let source: Arc<dyn TensorSource> = if single.exists() {
            Arc::new(SafetensorsFile::open(single)?)
        } else {
            Arc::new(ShardedSafetensors::open(dir)?)
        };
        Self::finish(config, source, dir, dir)
    }

    fn open_file(file: &Path, options: &OpenOptions<'_>) -> Result<Self> {
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let config = match &options.config {
            Some(config) => config.clone(),
            None if dir.join(CONFIG_FILE).exists() => config_of(dir, None)?,
            None => {
                let what = format!("no {CONFIG_FILE} beside it and no config given");
                return Err(Error::checkpoint(file, what));
            }
        };
        Self::finish(config, Arc::new(SafetensorsFile::open(file)?), dir, file)
    }

    fn finish(config: ModelConfig, source: Arc<dyn TensorSource>, dir: &Path, what: &Path) -> Result<Self> {
        refuse_lora_tensors(source.as_ref()).map_err(|problem| Error::checkpoint(what, problem))?;
        let source = LeRobotNames::unwrap_names(source)?;
        Ok(Self { config, source, dir: Some(dir.to_path_buf()) })
    }

    /// The model's configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The tensors.
    pub fn source(&self) -> &Arc<dyn TensorSource> {
        &self.source
    }

    /// The tensors, to be walked by dotted path.
    pub fn weights(&self) -> Weights {
        Weights::new(Arc::clone(&self.source))
    }

    /// The folder, `None` for synthetic weights.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The folder's `experiment_cfg/metadata.json`, if it has one.
    pub fn metadata_path(&self) -> Option<PathBuf> {
        self.existing(METADATA_FILE)
    }

    /// The folder's `tokenizer.json`, if it has one.
    pub fn tokenizer_path(&self) -> Option<PathBuf> {
        self.existing(TOKENIZER_FILE)
    }

    fn existing(&self, file: &str) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(file)).filter(|path| is_named(path))
    }

    /// Compares names, shapes and dtypes with the configuration; see [`validate`].
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that lists every difference.
    pub fn validate(&self) -> Result<Validation> {
        validate(self.source.as_ref(), &self.config)
    }

    /// Reads every weight, refuses NaN and infinities (see [`check_finite`]) and, in a hub cache, files whose
    /// SHA-256 is not the one that the hub announced. `progress` gets bytes done and bytes in all.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that lists every such tensor or file.
    pub fn check(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<CheckReport> {
        let files = self.dir.as_deref().map(hashed_files).unwrap_or_default();
        let file_bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let report = check_finite(self.source.as_ref(), &|done, total| progress(done, total + file_bytes))?;
        if let Some(dir) = &self.dir {
            let total = report.bytes + file_bytes;
            verify_hashes(dir, &files, &|done| progress(report.bytes + done, total))?;
        }
        Ok(report)
    }

    /// The safetensors files of the folder; none of synthetic weights.
    ///
    /// # Errors
    /// [`Error::Io`] that names what cannot be looked at.
    pub fn weight_files(&self) -> Result<Vec<WeightFile>> {
        self.dir.as_deref().map_or_else(|| Ok(Vec::new()), weight_files)
    }

    /// Tensors, elements and bytes per part of the model.
    pub fn inventory(&self) -> Vec<PartSize> {
        inventory(self.source.as_ref(), &self.config)
    }
}

/// The configuration in `dir`. `weights_problem` is what was found wrong with its weights: the better message if
/// there is no config either.
fn config_of(dir: &Path, weights_problem: Option<&String>) -> Result<ModelConfig> {
    let path = dir.join(CONFIG_FILE);
    if let Some(problem) = weights_problem.filter(|problem| !path.exists() || problem.contains("LoRA")) {
        return Err(Error::checkpoint(dir, problem));
    }
    match config_kind(&path).map_err(|what| Error::checkpoint(dir, what))? {
        ConfigKind::LeRobot => Ok(ModelConfig::n1_5()),
        ConfigKind::Nvidia => {
            let eagle = dir.join(EAGLE_CONFIG_FILE);
            ModelConfig::from_files(path, is_named(&eagle).then_some(eagle.as_path()))
        }
    }
}

/// Whether a file of this name is in its folder. A link that leads nowhere is: half a download must be an error of
/// reading, not the absence of what it names.
fn is_named(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
