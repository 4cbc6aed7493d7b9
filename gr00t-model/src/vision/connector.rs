//! Eagle's connector `mlp1`: one linear layer, no activation, no norm, no pixel shuffle in N1.5.
//!
//! Mirrors `mlp1` of
//! <https://github.com/NVIDIA/Isaac-GR00T/tree/n1.5-release/gr00t/model/backbone/eagle2_hg_model>.

use gr00t_host::config::EagleConfig;
use tt_ops::Device;

use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise};

/// `mlp1`.
#[derive(Debug)]
pub(super) struct Connector<D: Device> {
    linear: Linear<D>,
}

impl<D: Device> Connector<D> {
    pub(super) fn new(config: &EagleConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (vision, text) = (config.vision_config.hidden_size, config.text_config.hidden_size);
        Ok(Self { linear: Linear::new(vision, text, "0", weights)? })
    }

    /// `[images, patches, vision hidden_size]` to `[images, patches, text hidden_size]`.
    pub(super) fn forward(&self, x: &Activations<D>) -> Result<Precise<D>> {
        self.linear.forward(x)
    }
}
