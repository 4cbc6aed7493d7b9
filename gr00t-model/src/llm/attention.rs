//! Qwen3's attention: grouped queries, per-head norms before the rotation, causal over everything, image tokens included.
//!
//! Mirrors `Qwen3Attention` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/qwen3/modeling_qwen3.py>.

use gr00t_host::config::TextConfig;
use tt_ops::Device;
use tt_ops::ops::{self, Heads, Sdpa};

use super::rope::RotaryEmbedding;
use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise, RmsNorm};

/// `Qwen3Attention`; Q, K and V are one matmul, no projection has a bias.
#[derive(Debug)]
pub(super) struct Qwen3Attention<D: Device> {
    qkv: Linear<D>,
    q_norm: RmsNorm<D>,
    k_norm: RmsNorm<D>,
    o_proj: Linear<D>,
    heads: Heads,
}

impl<D: Device> Qwen3Attention<D> {
    pub(super) fn new(config: &TextConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, head_dim, eps) = (config.hidden_size, config.head_dim, config.rms_norm_eps);
        let heads = Heads::new(config.num_attention_heads).kv_heads(config.num_key_value_heads);
        let (q, kv) = (heads.num_heads * head_dim, heads.num_kv_heads * head_dim);
        let parts = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)];
        Ok(Self {
            qkv: Linear::fused_no_bias(dim, &parts, weights)?,
            q_norm: RmsNorm::new(head_dim, eps, &weights.pp("q_norm"))?,
            k_norm: RmsNorm::new(head_dim, eps, &weights.pp("k_norm"))?,
            o_proj: Linear::fused_no_bias(q, &[("o_proj", dim)], weights)?,
            heads,
        })
    }

    /// Adds the attention of `x [batch, sequence, hidden]` to `residual`.
    pub(super) fn add_to(
        &self,
        residual: &Precise<D>,
        x: &Activations<D>,
        rotary: &RotaryEmbedding<D>,
    ) -> Result<Precise<D>> {
        let qkv: Activations<D> = self.qkv.forward(x)?;
        let (q, k, v) = ops::split_query_key_value_and_split_heads(&qkv, None, self.heads)?;
        let q = rotary.forward(&self.q_norm.forward(&q)?)?;
        let k = rotary.forward(&self.k_norm.forward(&k)?)?;
        let x = ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().causal())?;
        self.o_proj.add_to(residual, &ops::concatenate_heads(&x)?)
    }
}
