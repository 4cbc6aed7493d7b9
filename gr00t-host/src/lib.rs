//! Everything of GR00T N1.5 that needs no device: configs, checkpoint reading, procedural weights, images,
//! prompt and tokenizer, state and action transforms, noise, metrics.
//!
//! One request flows forwards through it: [`Observation`] → [`encode::Encoder`] → [`ModelInputs`] → (a model)
//! → `action_pred` → [`decode::Decoder`] → [`ActionChunk`].

#![forbid(unsafe_code)]

pub mod action;
mod capped;
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
mod one_line;
pub mod prompt;
pub mod state;

pub use action::ActionChunk;
pub use capped::read_capped;
pub use checkpoint::{TensorSource, Weights};
pub use config::ModelConfig;
pub use encode::ModelInputs;
pub use error::{Error, Result};
/// The bfloat16 that weights are read as.
pub use half::bf16;
pub use observation::Observation;
pub use one_line::OneLine;
