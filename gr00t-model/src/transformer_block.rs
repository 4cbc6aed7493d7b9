//! Attention and feed-forward of `BasicTransformerBlock`, which adapter and DiT share.
//!
//! Mirrors `Attention` and `FeedForward` of diffusers 0.30.2
//! (<https://github.com/huggingface/diffusers/blob/v0.30.2/src/diffusers/models/attention.py>) as
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py> uses them.

use tt_ops::ops::{self, Heads, Sdpa};
use tt_ops::{Activation, Device};

use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise};

/// Width of the feed-forward's hidden layer, in widths of the block.
const FEED_FORWARD_MULT: usize = 4;

/// Self-attention; Q, K and V are one matmul, every projection has a bias.
#[derive(Debug)]
pub(crate) struct SelfAttention<D: Device> {
    to_qkv: Linear<D>,
    to_out: Linear<D>,
    heads: Heads,
}

impl<D: Device> SelfAttention<D> {
    /// Weights below `attn1`.
    pub(crate) fn new(dim: usize, heads: usize, weights: &Loader<'_, D>) -> Result<Self> {
        Ok(Self {
            to_qkv: Linear::fused(dim, &[("to_q", dim), ("to_k", dim), ("to_v", dim)], weights)?,
            to_out: Linear::new(dim, dim, "to_out.0", weights)?,
            heads: Heads::new(heads),
        })
    }

    /// Adds the attention of `x [batch, tokens, dim]` to `residual`.
    pub(crate) fn add_to(
        &self,
        residual: &Precise<D>,
        x: &Activations<D>,
        mask: Option<&Activations<D>>,
    ) -> Result<Precise<D>> {
        let qkv: Activations<D> = self.to_qkv.forward(x)?;
        let (q, k, v) = ops::split_query_key_value_and_split_heads(&qkv, None, self.heads)?;
        let x = ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().maybe_attn_mask(mask))?;
        self.to_out.add_to(residual, &ops::concatenate_heads(&x)?)
    }
}

/// Keys and values `[batch, heads, sequence, head_dim]` of one cross-attention, the same in every denoising step.
#[derive(Debug)]
pub(crate) struct KeyValue<D: Device> {
    k: Activations<D>,
    v: Activations<D>,
}

/// Cross-attention; K and V are one matmul.
#[derive(Debug)]
pub(crate) struct CrossAttention<D: Device> {
    to_q: Linear<D>,
    to_kv: Linear<D>,
    to_out: Linear<D>,
    dim: usize,
    heads: usize,
}

impl<D: Device> CrossAttention<D> {
    /// Weights below `attn1`, for keys and values from a memory of width `memory`.
    pub(crate) fn new(dim: usize, heads: usize, memory: usize, weights: &Loader<'_, D>) -> Result<Self> {
        Ok(Self {
            to_q: Linear::new(dim, dim, "to_q", weights)?,
            to_kv: Linear::fused(memory, &[("to_k", dim), ("to_v", dim)], weights)?,
            to_out: Linear::new(dim, dim, "to_out.0", weights)?,
            dim,
            heads,
        })
    }

    /// Keys and values of `memory [batch, sequence, memory width]`.
    pub(crate) fn key_value(&self, memory: &Activations<D>) -> Result<KeyValue<D>> {
        let kv: Activations<D> = self.to_kv.forward(memory)?;
        let (k, v) = (0..self.dim, self.dim..2 * self.dim);
        Ok(KeyValue {
            k: ops::split_heads(&ops::slice_dim(&kv, -1, k)?, self.heads)?,
            v: ops::split_heads(&ops::slice_dim(&kv, -1, v)?, self.heads)?,
        })
    }

    /// Adds the attention of `x [batch, tokens, dim]` over `memory` to `residual`.
    pub(crate) fn add_to(
        &self,
        residual: &Precise<D>,
        x: &Activations<D>,
        memory: &KeyValue<D>,
        mask: Option<&Activations<D>>,
    ) -> Result<Precise<D>> {
        let q: Activations<D> = self.to_q.forward(x)?;
        let q = ops::split_heads(&q, self.heads)?;
        let args = Sdpa::new().maybe_attn_mask(mask);
        let x = ops::scaled_dot_product_attention(&q, &memory.k, &memory.v, args)?;
        self.to_out.add_to(residual, &ops::concatenate_heads(&x)?)
    }
}

/// `FeedForward` with `gelu-approximate`.
#[derive(Debug)]
pub(crate) struct FeedForward<D: Device> {
    proj: Linear<D>,
    out: Linear<D>,
}

impl<D: Device> FeedForward<D> {
    /// Weights below `ff`.
    pub(crate) fn new(dim: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let (net, inner) = (weights.pp("net"), FEED_FORWARD_MULT * dim);
        Ok(Self { proj: Linear::new(dim, inner, "0.proj", &net)?, out: Linear::new(inner, dim, "2", &net)? })
    }

    /// Adds the feed-forward of `x` to `residual`.
    pub(crate) fn add_to(&self, residual: &Precise<D>, x: &Activations<D>) -> Result<Precise<D>> {
        let x: Activations<D> = self.proj.activate(x, Activation::GeluTanh)?;
        self.out.add_to(residual, &x)
    }
}
