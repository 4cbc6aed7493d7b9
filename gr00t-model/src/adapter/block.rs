//! One block of the adapter: full self-attention and feed-forward, both pre-norm.
//!
//! Mirrors `BasicTransformerBlock` with `norm_type="layer_norm"` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>.

use gr00t_host::config::VlSelfAttentionConfig;
use tt_ops::Device;

use super::NORM_EPS;
use crate::error::Result;
use crate::transformer_block::{FeedForward, SelfAttention};
use crate::weights::{Activations, LayerNorm, Loader, Precise};

/// `BasicTransformerBlock`: both norms are affine; no positions.
#[derive(Debug)]
pub(super) struct BasicTransformerBlock<D: Device> {
    norm1: LayerNorm<D>,
    attn1: SelfAttention<D>,
    norm3: LayerNorm<D>,
    ff: FeedForward<D>,
}

impl<D: Device> BasicTransformerBlock<D> {
    pub(super) fn new(config: &VlSelfAttentionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let dim = config.inner_dim();
        Ok(Self {
            norm1: LayerNorm::new(dim, NORM_EPS, &weights.pp("norm1"))?,
            attn1: SelfAttention::new(dim, config.num_attention_heads, &weights.pp("attn1"))?,
            norm3: LayerNorm::new(dim, NORM_EPS, &weights.pp("norm3"))?,
            ff: FeedForward::new(dim, &weights.pp("ff"))?,
        })
    }

    pub(super) fn forward(&self, x: &Precise<D>, mask: Option<&Activations<D>>) -> Result<Precise<D>> {
        let x = self.attn1.add_to(x, &self.norm1.forward(x)?, mask)?;
        self.ff.add_to(&x, &self.norm3.forward(&x)?)
    }
}
