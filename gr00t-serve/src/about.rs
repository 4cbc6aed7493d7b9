//! What the server says of itself: model, weights, device, fidelity, and an observation to try.

use serde_json::{Map, Value};

/// Filled in once, when the model is warm.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Short name of the model, as in `GR00T-N1.5-3B`.
    pub model: String,
    /// What the model list calls it: the weights' repository, or `synthetic`.
    pub model_id: String,
    /// Where it runs, as in `soft:0`.
    pub device: String,
    /// What `/info` shows beside the robot's keys.
    pub details: Map<String, Value>,
    /// What `/demo` shows: `request` and `expected`.
    pub demo: Value,
}
