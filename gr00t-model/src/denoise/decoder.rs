//! The action decoder: two category-specific layers with a ReLU between them.
//!
//! Mirrors `CategorySpecificMLP` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>.

use gr00t_host::config::ActionHeadConfig;
use tt_ops::{Activation, Device};

use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise};

/// `action_decoder`, one slot.
#[derive(Debug)]
pub(crate) struct ActionDecoder<D: Device> {
    layer1: Linear<D>,
    layer2: Linear<D>,
}

impl<D: Device> ActionDecoder<D> {
    pub(super) fn new(config: &ActionHeadConfig, slot: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let (slots, hidden) = (config.max_num_embodiments, config.hidden_size);
        Ok(Self {
            layer1: Linear::category([slots, hidden, hidden], slot, &weights.pp("layer1"))?,
            layer2: Linear::category([slots, hidden, config.action_dim], slot, &weights.pp("layer2"))?,
        })
    }

    /// `[batch, tokens, hidden_size]` to `[batch, tokens, action_dim]`.
    pub(crate) fn forward(&self, x: &Activations<D>) -> Result<Precise<D>> {
        let x: Activations<D> = self.layer1.activate(x, Activation::Relu)?;
        self.layer2.forward(&x)
    }
}
