//! The state encoder: two category-specific layers with a ReLU between them.
//!
//! Mirrors `CategorySpecificMLP` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>.

use gr00t_host::config::ActionHeadConfig;
use tt_ops::{Activation, Device};

use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise};

/// `state_encoder`, one slot.
#[derive(Debug)]
pub(crate) struct StateEncoder<D: Device> {
    layer1: Linear<D>,
    layer2: Linear<D>,
}

impl<D: Device> StateEncoder<D> {
    pub(super) fn new(config: &ActionHeadConfig, slot: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let (slots, hidden, dim) =
            (config.max_num_embodiments, config.hidden_size, config.input_embedding_dim);
        Ok(Self {
            layer1: Linear::category([slots, config.max_state_dim, hidden], slot, &weights.pp("layer1"))?,
            layer2: Linear::category([slots, hidden, dim], slot, &weights.pp("layer2"))?,
        })
    }

    /// `[batch, 1, max_state_dim]` to one token, `[batch, 1, input_embedding_dim]`.
    pub(crate) fn forward(&self, state: &Precise<D>) -> Result<Precise<D>> {
        let x: Activations<D> = self.layer1.activate(state, Activation::Relu)?;
        self.layer2.forward(&x)
    }
}
