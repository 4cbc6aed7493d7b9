//! How a model is bound to a robot.

use std::sync::Arc;

use gr00t_host::action::ActionOptions;
use gr00t_host::checkpoint::Checkpoint;
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata, synthetic_metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::noise::Noise;
use gr00t_host::prompt::Tokenizer;
use tt_ops::Device;

use super::Policy;
use crate::dtype_policy::DtypePolicy;
use crate::error::{ModelError, Result};
use crate::model::{Gr00t, Gr00tBuilder};

/// Options of a policy. See [`Policy::builder`].
#[must_use]
#[derive(Debug)]
pub struct PolicyBuilder<D: Device> {
    model: Model<D>,
    /// Gives statistics and tokenizer unless the caller does.
    checkpoint: Option<Box<Checkpoint>>,
    metadata: Option<Metadata>,
    tokenizer: Option<Arc<Tokenizer>>,
    data_config: Option<DataConfig>,
    encoder: EncoderOptions,
    action: ActionOptions,
    noise: Noise,
}

#[derive(Debug)]
enum Model<D: Device> {
    New(Box<Gr00tBuilder<D>>),
    Shared(Arc<Gr00t<D>>),
}

impl<D: Device> Policy<D> {
    /// A policy with a model of its own, from `checkpoint` on `device`; statistics and tokenizer are the checkpoint's
    /// unless others are given.
    pub fn builder(checkpoint: &Checkpoint, device: D) -> PolicyBuilder<D> {
        let model = Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), device);
        PolicyBuilder::new(Model::New(Box::new(model)), Some(Box::new(checkpoint.clone())))
    }

    /// A policy on a model that others may use too. Statistics must be given; the tokenizer is the built-in one unless another
    /// is given.
    pub fn on(model: Arc<Gr00t<D>>) -> PolicyBuilder<D> {
        PolicyBuilder::new(Model::Shared(model), None)
    }
}

impl<D: Device> PolicyBuilder<D> {
    fn new(model: Model<D>, checkpoint: Option<Box<Checkpoint>>) -> Self {
        Self {
            model,
            checkpoint,
            metadata: None,
            tokenizer: None,
            data_config: None,
            encoder: EncoderOptions::default(),
            action: ActionOptions::default(),
            noise: Noise::default(),
        }
    }

    /// Cameras, state keys, action keys, embodiment and horizon of the robot. Must be given.
    pub fn data_config(mut self, data_config: DataConfig) -> Self {
        self.data_config = Some(data_config);
        self
    }

    /// Statistics and resolutions, in place of the checkpoint's.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// A tokenizer in place of the checkpoint's.
    pub fn tokenizer(mut self, tokenizer: Arc<Tokenizer>) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }

    /// Data types of the matmul weights; `mixed_dit`. A shared model keeps its own.
    pub fn dtype_policy(self, policy: DtypePolicy) -> Self {
        self.configure(|model| model.dtype_policy(policy))
    }

    /// Other options of the model. A shared model keeps its own.
    pub fn configure(mut self, set: impl FnOnce(Gr00tBuilder<D>) -> Gr00tBuilder<D>) -> Self {
        self.model = match self.model {
            Model::New(model) => Model::New(Box::new(set(*model))),
            shared @ Model::Shared(_) => shared,
        };
        self
    }

    /// How observations are read.
    pub fn encoder_options(mut self, options: EncoderOptions) -> Self {
        self.encoder = options;
        self
    }

    /// How actions are written.
    pub fn action_options(mut self, options: ActionOptions) -> Self {
        self.action = options;
        self
    }

    /// Initial noise of predictions that bring none: torch's for seed 0.
    pub fn noise(mut self, noise: Noise) -> Self {
        self.noise = noise;
        self
    }

    /// Checks that data config, statistics and model fit together, then loads the model.
    ///
    /// # Errors
    /// A data config that is missing or does not fit, real weights without statistics, what loading reports.
    pub fn build(self) -> Result<Policy<D>> {
        let Some(data_config) = self.data_config else {
            return Err(missing("data_config", "the robot's data config"));
        };
        let checkpoint = self.checkpoint.as_deref();
        let metadata = match self.metadata {
            Some(metadata) => metadata,
            None => statistics(checkpoint, &data_config)?,
        };
        let tokenizer = match (self.tokenizer, checkpoint.and_then(Checkpoint::dir)) {
            (Some(tokenizer), _) => tokenizer,
            (None, Some(dir)) => Arc::new(Tokenizer::for_folder(dir)?),
            (None, None) => Arc::new(Tokenizer::qwen2()),
        };
        let config = match &self.model {
            Model::New(model) => model.config(),
            Model::Shared(model) => model.config(),
        };
        // upstream rebuilds the head for another horizon; no weight depends on it
        let config = config.clone().with_action_horizon(data_config.action_horizon)?;
        let encoder = Encoder::new(&config, &data_config, &metadata, tokenizer, self.encoder)?;
        let decoder = Decoder::new(&config, &data_config, &metadata, self.action)?;
        let slot = encoder.embodiment_id();
        let model = match self.model {
            Model::New(model) => Arc::new(model.embodiments([slot]).build()?),
            Model::Shared(model) => {
                model.load_embodiment(slot)?;
                model
            }
        };
        Ok(Policy { model, encoder, decoder, noise: self.noise })
    }
}

/// The checkpoint's statistics; written-down ones for synthetic weights.
fn statistics(checkpoint: Option<&Checkpoint>, data_config: &DataConfig) -> Result<Metadata> {
    let Some(checkpoint) = checkpoint else {
        return Err(missing("metadata", "statistics: a shared model has none"));
    };
    match (checkpoint.metadata_path(), checkpoint.dir()) {
        (Some(path), _) => Ok(Metadata::from_file(path)?),
        (None, None) => Ok(synthetic_metadata(data_config)?),
        (None, Some(_)) => Err(missing("metadata", "statistics: the checkpoint has none")),
    }
}

fn missing(option: &'static str, wanted: &str) -> ModelError {
    ModelError::Option { option, got: "none".into(), wanted: wanted.into() }
}
