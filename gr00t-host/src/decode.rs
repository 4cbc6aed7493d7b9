//! Model output → physical actions: the way back of [`crate::encode`].
//!
//! Mirrors the end of `Gr00tPolicy.get_action` (GR00T N1.5, `gr00t/model/policy.py`): slice, denormalise, rotate back.

use crate::Result;
use crate::action::{ActionChunk, ActionOptions, ActionTransform};
use crate::config::ModelConfig;
use crate::embodiment::{DataConfig, Metadata};

/// Turns a model's output into the action chunk of one embodiment.
#[derive(Debug, Clone)]
pub struct Decoder {
    action: ActionTransform,
    horizon: usize,
    action_dim: usize,
}

impl Decoder {
    /// Binds a data config to a model and the statistics.
    ///
    /// # Errors
    /// [`crate::Error::DataConfig`] or [`crate::Error::Metadata`] if they don't fit together.
    pub fn new(
        model: &ModelConfig,
        data_config: &DataConfig,
        metadata: &Metadata,
        options: ActionOptions,
    ) -> Result<Self> {
        let head = &model.gr00t.action_head_cfg;
        let (embodiment, _) = metadata.embodiment(&data_config.embodiment)?;
        let action =
            ActionTransform::new(data_config, embodiment, head.max_action_dim)?.with_options(options);
        Ok(Self { action, horizon: head.action_horizon, action_dim: head.max_action_dim })
    }

    /// The action side.
    pub fn action(&self) -> &ActionTransform {
        &self.action
    }

    /// Time steps of one chunk.
    pub fn horizon(&self) -> usize {
        self.horizon
    }

    /// Values of one time step of the model's output and noise, padding included.
    pub fn action_dim(&self) -> usize {
        self.action_dim
    }

    /// Physical actions of `action_pred` `[action_horizon, action_dim]`, row-major.
    ///
    /// # Errors
    /// [`crate::Error::Action`] if it has another size, or a value is NaN or infinite.
    pub fn decode(&self, action_pred: &[f32]) -> Result<ActionChunk> {
        self.action.apply(action_pred, self.horizon)
    }
}
