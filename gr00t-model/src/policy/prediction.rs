//! Options and result of one prediction.

use std::time::Duration;

use gr00t_host::ActionChunk;
use gr00t_host::encode::EncodeTimings;
use gr00t_host::noise::Noise;
use gr00t_host::prompt::Prompt;

use crate::model::RunOptions;
use crate::stages::{CancelToken, ModelTimings};

/// Options of one prediction; what is not set is the policy's.
///
/// ```
/// use gr00t_model::{CancelToken, PredictOptions};
///
/// let options = PredictOptions::new().seed(7).denoising_steps(8).cancel_token(CancelToken::new());
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct PredictOptions {
    pub(super) noise: Option<Noise>,
    pub(super) run: RunOptions,
}

impl PredictOptions {
    /// The policy's noise and number of steps, no way to cancel.
    pub fn new() -> Self {
        Self::default()
    }

    /// Initial noise as torch draws it for `seed`.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.noise(Noise::Seed(seed))
    }

    /// Where the initial noise comes from.
    #[must_use]
    pub fn noise(mut self, noise: Noise) -> Self {
        self.noise = Some(noise);
        self
    }

    /// Another number of Euler steps, 1 to [`MAX_DENOISING_STEPS`](crate::MAX_DENOISING_STEPS).
    #[must_use]
    pub fn denoising_steps(mut self, steps: usize) -> Self {
        self.run = self.run.denoising_steps(steps);
        self
    }

    /// Asked before each stage.
    #[must_use]
    pub fn cancel_token(mut self, cancel: CancelToken) -> Self {
        self.run = self.run.cancel_token(cancel);
        self
    }
}

/// What a robot executes next, and how it came about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Prediction {
    /// Physical actions.
    pub chunk: ActionChunk,
    /// Normalised actions `[horizon, action_dim]`, row-major.
    pub action_pred: Vec<f32>,
    /// The initial noise that was used.
    pub noise: Vec<f32>,
    /// The prompt that was used.
    pub prompt: Prompt,
    /// One line each.
    pub warnings: Vec<String>,
    /// Where the time went.
    pub timings: PolicyTimings,
}

/// Wall times of one prediction; those of the model are of the whole batch.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PolicyTimings {
    /// Images, prompt, state.
    pub encode: EncodeTimings,
    /// The device.
    pub model: ModelTimings,
    /// Actions to physical units.
    pub decode: Duration,
    /// From the call to its result.
    pub total: Duration,
}
