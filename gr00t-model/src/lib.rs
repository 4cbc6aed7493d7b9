//! GR00T N1.5 on `tt-ops`.

#![forbid(unsafe_code)]

mod adapter;
mod denoise;
mod dtype_policy;
mod error;
mod llm;
mod mask;
mod model;
mod network;
mod observer;
mod pipeline;
mod policy;
mod stages;
mod taps;
mod trace_cache;
mod transformer_block;
mod vision;
mod weights;

pub use dtype_policy::{DtypePolicy, Part};
pub use error::{ModelError, Result};
pub use model::{
    Gr00t, Gr00tBuilder, LoadProgress, MAX_DENOISING_STEPS, ModelOptions, NormalizedActions, RunOptions,
};
pub use observer::Observer;
pub use policy::{Policy, PolicyBuilder, PolicyTimings, PredictOptions, Prediction};
pub use stages::{CancelToken, ModelTimings, Stage, StageTiming, TraceLayout};
pub use trace_cache::{TraceCacheStats, TraceKey};
pub use weights::{StructureReport, WeightClass, WeightRole};
