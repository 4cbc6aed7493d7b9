//! GR00T N1.5 on `tt-ops`: an observation of a robot in, its next actions out.
//!
//! * [`Policy`] is what other crates embed: a model bound to one robot's cameras, state, actions and statistics.
//! * [`Gr00t`] is the model alone, from [`ModelInputs`](gr00t_host::ModelInputs) to normalised actions; several policies can share one.
//! * [`DtypePolicy`] says in which data type the weights of each part are kept.
//! * Stages ([`Stage`]) are captured once per geometry ([`TraceKey`]) and then only replayed.
//!
//! Everything is generic over the device: the same code runs on [`tt_ops::Soft`], the CPU, and on [`tt_ops::Metal`], the card.
//!
//! ```
//! use gr00t_host::ModelConfig;
//! use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
//! use gr00t_host::embodiment::DataConfig;
//! use gr00t_model::Policy;
//! use tt_ops::Soft;
//!
//! let spec = WeightsSpec::Synthetic { seed: 3 };
//! let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini()))?;
//! let policy = Policy::builder(&checkpoint, Soft::open()?)
//!     .data_config(DataConfig::builtin("fourier_gr1_arms_only")?)
//!     .build()?;
//! println!("{}", policy.model().structure());
//! assert_eq!(policy.encoder().view_keys().collect::<Vec<_>>(), ["ego_view"]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Policy`]'s page goes on from here to a prediction; `examples/receding_horizon.rs` is a control loop with a deadline.
//!
//! # What is computed, and how exactly
//!
//! The network is upstream's, part by part; the files name the classes that they mirror. Sums, softmax and norm statistics are fp32,
//! activations between ops bf16, residual streams and the flow's state fp32. Equal inputs give equal bytes: whatever the number
//! of threads, the padding, the company in a batch, the trace layout, an observer, or what ran before.
//!
//! Computed once and not per step: time embeddings and modulation vectors of each time bucket (at load), keys and values of the
//! cross-attentions (per observation).
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | none | | this crate has no features of its own: devices are features of `tt-ops`, checkpoint download one of `gr00t-host` |
//!
//! # Versions
//!
//! Needs Rust 1.95; a newer one is required only by a new minor version. Versions follow semver: before 1.0, a minor version may
//! change what is public, a patch version never does. Enums and result types that will grow are `#[non_exhaustive]`.
//! Actions may change in the last bits between minor versions; within a patch series, equal inputs on one device give equal bytes.

#![forbid(unsafe_code)]

/// The embedding guide's code, compiled and run with this crate's examples.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct EmbeddingGuide;

mod adapter;
mod denoise;
mod diff;
mod dtype_policy;
mod error;
mod llm;
mod mask;
mod model;
mod network;
mod observer;
mod packed_cache;
mod pipeline;
mod policy;
mod stages;
mod taps;
mod trace_cache;
mod transformer_block;
mod vision;
mod weights;

pub use diff::diff;
pub use dtype_policy::{DtypePolicy, Part};
pub use error::{ModelError, Result};
pub use model::{
    Gr00t, Gr00tBuilder, LoadProgress, MAX_DENOISING_STEPS, ModelOptions, NormalizedActions, RunOptions,
};
pub use observer::Observer;
pub use packed_cache::{PackedCache, PackedCacheStats};
pub use policy::{Policy, PolicyBuilder, PolicyTimings, PredictOptions, Prediction};
pub use stages::{CancelToken, ModelTimings, Stage, StageTiming, TraceLayout};
pub use trace_cache::{TraceCacheStats, TraceKey};
/// The device under the model, so that a program names one crate.
#[doc(no_inline)]
pub use tt_ops;
pub use weights::{StructureReport, WeightClass, WeightRole};
