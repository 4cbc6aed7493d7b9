//! Noisy actions and their flow time to tokens.
//!
//! Mirrors `MultiEmbodimentActionEncoder` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>. Its second layer
//! reads `[a, tau]`, and tau is the same for all rows: `[a, tau] W2 + b2 = a W2[..dim] + (tau W2[dim..] + b2)`, where the
//! bracket is a bias that depends on the time alone.

use gr00t_host::config::ActionHeadConfig;
use tt_ops::{Activation, Device, Weight, ops};

use super::time::sinusoidal_positional_encoding;
use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise};

/// `action_encoder`, one slot.
#[derive(Debug)]
pub(crate) struct ActionEncoder<D: Device> {
    w1: Linear<D>,
    /// The rows of `W2` that read actions.
    w2: Weight<D>,
    w3: Linear<D>,
}

impl<D: Device> ActionEncoder<D> {
    pub(super) fn new(config: &ActionHeadConfig, slot: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let (slots, dim) = (config.max_num_embodiments, config.input_embedding_dim);
        Ok(Self {
            w1: Linear::category([slots, config.action_dim, dim], slot, &weights.pp("W1"))?,
            w2: weights.pp("W2").category([slots, 2 * dim, dim], slot, 0..dim)?,
            w3: Linear::category([slots, dim, dim], slot, &weights.pp("W3"))?,
        })
    }

    /// `actions [batch, horizon, action_dim]` to `[batch, horizon, dim]`; `tau [1, dim]` is one of [`taus`].
    pub(crate) fn forward(&self, actions: &Precise<D>, tau: &Precise<D>) -> Result<Precise<D>> {
        let x: Activations<D> = self.w1.forward(actions)?;
        let args = ops::Linear::new().bias(tau).activation(Activation::Silu);
        let x: Activations<D> = ops::linear(&x, &self.w2, args)?;
        self.w3.forward(&x)
    }
}

/// `tau W2[dim..] + b2` `[1, dim]` of each time bucket; `weights` is at `action_encoder`.
pub(super) fn taus<D: Device>(
    config: &ActionHeadConfig,
    slot: usize,
    timesteps: &[usize],
    weights: &Loader<'_, D>,
) -> Result<Vec<Precise<D>>> {
    let (slots, dim) = (config.max_num_embodiments, config.input_embedding_dim);
    let tables: Vec<f32> = timesteps.iter().flat_map(|&t| sinusoidal_positional_encoding(t, dim)).collect();
    let tau = weights.scratch([timesteps.len(), dim], &tables)?;
    let weights = weights.pp("W2");
    let w2 = weights.category([slots, 2 * dim, dim], slot, dim..2 * dim)?;
    let b2 = weights.category_bias(slots, dim, slot)?;
    let taus: Precise<D> = ops::linear(&tau, &w2, ops::Linear::new().bias(&b2))?;
    (0..timesteps.len()).map(|k| Ok(ops::slice_dim(&taus, 0, k..k + 1)?)).collect()
}
