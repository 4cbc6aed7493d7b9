//! Everything of GR00T N1.5 that needs no device: configs, checkpoint reading, procedural weights, images,
//! prompt and tokenizer, state and action transforms, noise, metrics.
//!
//! One request flows forwards through it: [`Observation`] → [`encode::Encoder`] → [`ModelInputs`] → (a model)
//! → `action_pred` → [`decode::Decoder`] → [`ActionChunk`].

#![forbid(unsafe_code)]

pub mod action;
pub mod checkpoint;
pub mod config;
pub mod decode;
pub mod embodiment;
pub mod encode;
mod error;
pub mod image;
pub mod metrics;
pub mod noise;
pub mod observation;
pub mod prompt;
pub mod state;

pub use action::ActionChunk;
pub use checkpoint::{TensorSource, Weights};
pub use config::ModelConfig;
pub use encode::ModelInputs;
pub use error::{Error, Result};
pub use observation::Observation;
