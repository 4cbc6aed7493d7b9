//! From the model's action matrix to physical actions; source: the inverse of NVIDIA's `ConcatTransform` and
//! `StateActionTransform` (GR00T N1.5), all in f32 as upstream.

use super::chunk::{ActionChunk, ActionGroup};
use crate::embodiment::{DataConfig, EmbodimentMetadata, NormalizationMode};
use crate::state::{KeyTransform, Side};
use crate::{Error, Result};

/// What may be done to actions beyond what upstream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ActionOptions {
    /// Move values outside the statistics' range to its edge; upstream doesn't.
    pub clip: bool,
}

impl ActionOptions {
    /// With [`clip`](Self::clip) set or not.
    #[must_use]
    pub fn with_clip(mut self, clip: bool) -> Self {
        self.clip = clip;
        self
    }
}

/// The action side of a data config, bound to an embodiment's metadata.
#[derive(Debug, Clone)]
pub struct ActionTransform {
    keys: Vec<KeyTransform>,
    max_action_dim: usize,
    options: ActionOptions,
}

impl ActionTransform {
    /// Binds `config` to `metadata` for a model with `max_action_dim` outputs per step (32 in N1.5).
    ///
    /// # Errors
    /// [`Error::DataConfig`] listing everything that doesn't fit, as in [`crate::state::StateTransform::new`].
    pub fn new(config: &DataConfig, metadata: &EmbodimentMetadata, max_action_dim: usize) -> Result<Self> {
        let mut problems = Vec::new();
        let keys = KeyTransform::bind_all(
            Side::Action,
            &config.action_keys,
            metadata,
            max_action_dim,
            &mut problems,
        );
        if problems.is_empty() {
            Ok(Self { keys, max_action_dim, options: ActionOptions::default() })
        } else {
            Err(Error::DataConfig { name: config.name.clone(), what: problems.join("; ") })
        }
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: ActionOptions) -> Self {
        self.options = options;
        self
    }

    /// The keys, in the order of the action vector.
    pub fn keys(&self) -> &[KeyTransform] {
        &self.keys
    }

    /// Number of the model's outputs per step that are actions.
    pub fn dim(&self) -> usize {
        self.keys.iter().map(KeyTransform::model_dim).sum()
    }

    /// Keys that come out the same whatever the model says, because their statistics have no range: right for a hand that
    /// never moved in the training data, and the sign of bad metadata otherwise.
    pub fn constant_keys(&self) -> Vec<&str> {
        self.keys.iter().filter(|k| k.is_constant()).map(KeyTransform::key).collect()
    }

    /// Turns the model's output `[horizon, max_action_dim]`, row-major, into physical actions.
    ///
    /// # Errors
    /// [`Error::Action`] if the size is another, or any action is NaN or infinite.
    pub fn apply(&self, action_pred: &[f32], horizon: usize) -> Result<ActionChunk> {
        if horizon == 0 || horizon.checked_mul(self.max_action_dim) != Some(action_pred.len()) {
            return Err(Error::Action(format!(
                "{} values, wanted {horizon} steps of {}",
                action_pred.len(),
                self.max_action_dim
            )));
        }
        let mut chunk = ActionChunk { horizon, groups: Vec::with_capacity(self.keys.len()), out_of_range: 0 };
        let mut start = 0;
        for key in &self.keys {
            let mut values = Vec::with_capacity(horizon.saturating_mul(key.dim()));
            for (step, row) in action_pred.chunks_exact(self.max_action_dim).enumerate() {
                let model = row.get(start..start + key.model_dim()).unwrap_or_default();
                if let Some(bad) = model.iter().find(|v| !v.is_finite()) {
                    return Err(Error::Action(format!(
                        "model output for {} step {step} is {bad}",
                        key.key()
                    )));
                }
                key.inverse(model, &mut values);
            }
            if let Some((at, bad)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
                return Err(Error::Action(format!("{} step {} is {bad}", key.key(), at / key.dim())));
            }
            chunk.out_of_range += self.count_and_clip(key, &mut values);
            chunk.groups.push(ActionGroup { key: key.key().to_owned(), dim: key.dim(), values });
            start += key.model_dim();
        }
        Ok(chunk)
    }

    fn count_and_clip(&self, key: &KeyTransform, values: &mut [f32]) -> usize {
        let Some(ranges) = key.ranges().filter(|_| key.mode() != NormalizationMode::Binary) else { return 0 };
        let mut outside = 0;
        for step in values.chunks_exact_mut(key.dim()) {
            for (index, value) in step.iter_mut().enumerate() {
                outside += usize::from(ranges.is_outside(index, f64::from(*value)));
                if self.options.clip {
                    *value = ranges.clip(index, *value);
                }
            }
        }
        outside
    }
}
