//! Options of a model and of one prediction.

use gr00t_host::config::ActionHeadConfig;
use tt_ops::Device;

use crate::error::{ModelError, Result};
use crate::stages::{CancelToken, TraceLayout};

/// Most denoising steps of one prediction.
pub const MAX_DENOISING_STEPS: usize = 16;
/// Captured geometries that are kept.
const TRACE_CAP: usize = 8;
/// Observations that share one replay.
const MAX_BATCH: usize = 8;

/// Options that hold for all predictions of a model. Set through [`Gr00tBuilder`](super::Gr00tBuilder).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// How stages are grouped into traces.
    pub trace_layout: TraceLayout,
    /// Captured geometries that are kept, least recently used first out; 8.
    pub trace_cap: usize,
    /// Sequences are padded to a multiple of it, 1 pads nothing; the device's [`ROW_TILE`](tt_ops::Device::ROW_TILE).
    pub sequence_bucket: usize,
    /// Observations of [`predict_batch`](super::Gr00t::predict_batch) that share one replay; 8.
    pub max_batch: usize,
    /// Euler steps where a prediction asks for no other number: the config's.
    pub denoising_steps: usize,
}

impl ModelOptions {
    pub(super) fn new<D: Device>(config: &ActionHeadConfig) -> Self {
        Self {
            trace_layout: TraceLayout::default(),
            trace_cap: TRACE_CAP,
            sequence_bucket: D::ROW_TILE,
            max_batch: MAX_BATCH,
            denoising_steps: config.num_inference_timesteps,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        positive("trace_cap", self.trace_cap)?;
        positive("sequence_bucket", self.sequence_bucket)?;
        positive("max_batch", self.max_batch)?;
        check_steps(self.denoising_steps).map(drop)
    }
}

/// Options of one prediction.
///
/// ```
/// use gr00t_model::{CancelToken, RunOptions};
///
/// let cancel = CancelToken::new();
/// let options = RunOptions::new().denoising_steps(8).cancel_token(cancel.clone());
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    denoising_steps: Option<usize>,
    cancel: CancelToken,
}

impl RunOptions {
    /// The model's number of steps, no way to cancel.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another number of Euler steps, 1 to [`MAX_DENOISING_STEPS`].
    #[must_use]
    pub fn denoising_steps(mut self, steps: usize) -> Self {
        self.denoising_steps = Some(steps);
        self
    }

    /// Asked before each stage.
    #[must_use]
    pub fn cancel_token(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    pub(super) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    pub(super) fn checked_steps(&self, default: usize) -> Result<usize> {
        check_steps(self.denoising_steps.unwrap_or(default))
    }
}

fn check_steps(steps: usize) -> Result<usize> {
    if (1..=MAX_DENOISING_STEPS).contains(&steps) {
        return Ok(steps);
    }
    let wanted = format!("1 to {MAX_DENOISING_STEPS}");
    Err(ModelError::Option { option: "denoising_steps", got: steps.to_string(), wanted })
}

fn positive(option: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(ModelError::Option { option, got: value.to_string(), wanted: "at least 1".into() })
}
