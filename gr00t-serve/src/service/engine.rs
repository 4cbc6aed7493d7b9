//! The policy behind the service: one model on one device, read by two sets of rules.

use std::fmt;
use std::sync::Arc;

use gr00t_host::ModelInputs;
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::encode::Encoder;
use gr00t_model::tt_ops::Device;
use gr00t_model::{Gr00t, ModelError, NormalizedActions, Policy, RunOptions};

use super::request::Rules;
use super::robot::Robot;

/// What runs on the device, one call at a time.
pub trait Model: fmt::Debug + Send + Sync {
    /// Normalised actions of `inputs`.
    ///
    /// # Errors
    /// As [`Gr00t::predict`].
    fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions, ModelError>;
}

impl<D: Device> Model for Gr00t<D> {
    fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions, ModelError> {
        Gr00t::predict(self, inputs, options)
    }
}

/// A model bound to a robot, for each of the [`Rules`].
#[derive(Debug)]
pub struct Engine {
    pub(super) model: Arc<dyn Model>,
    pub(super) predict: Encoder,
    pub(super) upstream: Encoder,
    pub(super) decoder: Decoder,
    pub(super) robot: Arc<Robot>,
}

impl Engine {
    /// An engine of two policies on the same model: `predict` with the options of [`Rules::Predict`], `upstream` with those of
    /// [`Rules::Upstream`].
    pub fn new<D: Device>(
        predict: &Policy<D>,
        upstream: &Policy<D>,
        data_config: DataConfig,
        metadata: Metadata,
    ) -> Self {
        let robot = Robot::new(data_config, metadata, predict.encoder(), predict.decoder());
        Self {
            model: Arc::clone(predict.model()) as Arc<dyn Model>,
            predict: predict.encoder().clone(),
            upstream: upstream.encoder().clone(),
            decoder: predict.decoder().clone(),
            robot: Arc::new(robot),
        }
    }

    /// The same with another model in front of the device: tests put one there that waits.
    #[must_use]
    pub fn with_model(mut self, model: impl FnOnce(Arc<dyn Model>) -> Arc<dyn Model>) -> Self {
        self.model = model(self.model);
        self
    }

    /// What it reads and writes.
    pub fn robot(&self) -> &Arc<Robot> {
        &self.robot
    }

    pub(super) fn encoder(&self, rules: Rules) -> &Encoder {
        match rules {
            Rules::Predict => &self.predict,
            Rules::Upstream => &self.upstream,
        }
    }
}
