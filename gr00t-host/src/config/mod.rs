//! Model configuration: NVIDIA's `config.json` ([`Gr00tConfig`]), the Eagle backbone's sizes ([`EagleConfig`]),
//! and both together, checked ([`ModelConfig`]).

mod eagle;
mod gr00t;
mod model;
mod validate;

pub use eagle::{EagleConfig, TextConfig, VisionConfig};
pub use gr00t::{ActionHeadConfig, BackboneConfig, DiffusionModelConfig, Gr00tConfig, VlSelfAttentionConfig};
pub use model::ModelConfig;
