//! The stages of one prediction and how they are grouped into traces.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{ModelError, Result};

/// What one trace computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Patches to image tokens.
    Vision,
    /// Tokens to backbone features.
    Llm,
    /// Backbone features to the cross-attention memory.
    Adapter,
    /// `Vision`, `Llm` and `Adapter` in one trace.
    Backbone,
    /// Keys and values of the cross-attentions, then all denoising steps.
    Denoise,
}

impl Stage {
    /// Short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Llm => "llm",
            Self::Adapter => "adapter",
            Self::Backbone => "backbone",
            Self::Denoise => "denoise",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How stages are grouped into traces. Results are the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TraceLayout {
    /// One trace per stage: `vision`, `llm`, `adapter`, `denoise`.
    #[default]
    PerStage,
    /// `backbone` and `denoise`.
    Two,
}

impl TraceLayout {
    /// The name that options use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerStage => "per_stage",
            Self::Two => "two",
        }
    }

    /// The stages, in the order in which they run.
    pub const fn stages(self) -> &'static [Stage] {
        match self {
            Self::PerStage => &[Stage::Vision, Stage::Llm, Stage::Adapter, Stage::Denoise],
            Self::Two => &[Stage::Backbone, Stage::Denoise],
        }
    }
}

impl fmt::Display for TraceLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TraceLayout {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self> {
        [Self::PerStage, Self::Two].into_iter().find(|layout| layout.name() == name).ok_or_else(|| {
            ModelError::Name { what: "trace layout", got: name.into(), wanted: "per_stage or two" }
        })
    }
}

/// How long a stage's replay took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageTiming {
    /// The stage.
    pub stage: Stage,
    /// Wall time of its replay.
    pub elapsed: Duration,
}

/// Where the device time of a prediction went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ModelTimings {
    /// Waiting for the device and, the first time, capturing.
    pub prepare: Duration,
    /// Writing the inputs.
    pub write: Duration,
    /// The stages, in order.
    pub stages: Vec<StageTiming>,
    /// Reading the actions.
    pub read: Duration,
}

impl ModelTimings {
    /// Wall time of all stages.
    pub fn stages_total(&self) -> Duration {
        self.stages.iter().map(|stage| stage.elapsed).sum()
    }
}

/// Asks a prediction to stop before its next stage. Clones are the same token.
///
/// ```
/// use gr00t_model::CancelToken;
///
/// let token = CancelToken::new();
/// let for_the_request = token.clone();
/// token.cancel();
/// assert!(for_the_request.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that does not ask yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether someone asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self, before: Stage) -> Result<()> {
        if self.is_cancelled() { Err(ModelError::Cancelled { before }) } else { Ok(()) }
    }
}
