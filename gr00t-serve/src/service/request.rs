//! What a protocol hands to the service, and what it gets back.

use std::time::Duration;

use gr00t_host::encode::EncodeTimings;
use gr00t_host::noise::Noise;
use gr00t_host::prompt::Prompt;
use gr00t_host::{ActionChunk, Observation};
use gr00t_model::ModelTimings;

/// How strictly an observation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rules {
    /// `/predict`: frames of any size are resized, unknown keys are errors.
    #[default]
    Predict,
    /// NVIDIA's and openpi's protocols, as upstream: frames must have the metadata's size, unknown keys are warnings.
    Upstream,
}

/// One observation and how to answer it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What the robot sees.
    pub observation: Observation,
    /// Initial noise; `None` is the server's default seed.
    pub noise: Option<Noise>,
    /// How strictly it is read.
    pub rules: Rules,
    /// Another number of denoising steps than the model's.
    pub denoising_steps: Option<usize>,
    /// What is wrong with the parts that could not even be put into the observation, one line each, as in `image front: broken png`.
    /// The request is refused, with what else is wrong with it.
    pub problems: Vec<String>,
}

impl Request {
    /// `observation` with the server's noise, read as `/predict` does.
    pub fn new(observation: Observation) -> Self {
        Self { observation, ..Self::default() }
    }

    /// With noise of its own.
    #[must_use]
    pub fn noise(mut self, noise: Noise) -> Self {
        self.noise = Some(noise);
        self
    }

    /// Read by other rules.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }
}

/// The actions and how they came about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reply {
    /// Physical actions.
    pub chunk: ActionChunk,
    /// Normalised actions `[horizon, action_dim]`, row-major.
    pub action_pred: Vec<f32>,
    /// The noise that was asked for.
    pub noise: Noise,
    /// The prompt that was used.
    pub prompt: Prompt,
    /// One line each.
    pub warnings: Vec<String>,
    /// Where the time went.
    pub timings: Timings,
}

/// Wall times of one request within the service.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Reading the request: base64, image files, array formats.
    pub read: Duration,
    /// Images, prompt, state: all of the host's work before the device.
    pub encode: Duration,
    /// Parts of `encode`.
    pub encode_parts: EncodeTimings,
    /// Waiting for the device.
    pub queue: Duration,
    /// On the device: inputs written, stages replayed, actions read.
    pub device: Duration,
    /// Parts of `device`.
    pub model: ModelTimings,
    /// Actions to physical units.
    pub decode: Duration,
    /// From the call to its result.
    pub total: Duration,
}
