//! Attention and feed-forward of `BasicTransformerBlock`, which adapter and DiT share.
//!
//! Mirrors `Attention` and `FeedForward` of diffusers 0.30.2
//! (<https://github.com/huggingface/diffusers/blob/v0.30.2/src/diffusers/models/attention.py>) as
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py> uses them.

use gr00t_host::Weights;
use ndarray::Array2;

use crate::Result;
use crate::nn::{Heads, Linear, Mask, attention, gelu_tanh};

/// Width of the feed-forward's hidden layer, in widths of the block.
const FEED_FORWARD_MULT: usize = 4;

/// Keys and values of one attention.
#[derive(Debug)]
pub(crate) struct KeyValue {
    k: Array2<f32>,
    v: Array2<f32>,
}

/// The two projections that make keys and values.
#[derive(Debug)]
pub(crate) struct ToKeyValue {
    to_k: Linear,
    to_v: Linear,
}

impl ToKeyValue {
    /// From tokens of width `inputs`.
    pub(crate) fn new(inputs: usize, heads: Heads, weights: &Weights) -> Result<Self> {
        Ok(Self {
            to_k: Linear::new(inputs, heads.key_value_dim(), &weights.pp("to_k"))?,
            to_v: Linear::new(inputs, heads.key_value_dim(), &weights.pp("to_v"))?,
        })
    }

    pub(crate) fn forward(&self, x: &Array2<f32>) -> KeyValue {
        KeyValue { k: self.to_k.forward(x), v: self.to_v.forward(x) }
    }
}

/// The query side of `Attention`, unmasked; every projection has a bias.
#[derive(Debug)]
pub(crate) struct Attention {
    to_q: Linear,
    to_out: Linear,
    heads: Heads,
}

impl Attention {
    pub(crate) fn new(heads: Heads, weights: &Weights) -> Result<Self> {
        let dim = heads.query_dim();
        Ok(Self {
            to_q: Linear::new(dim, dim, &weights.pp("to_q"))?,
            to_out: Linear::new(dim, dim, &weights.pp("to_out").pp(0))?,
            heads,
        })
    }

    pub(crate) fn forward(&self, x: &Array2<f32>, memory: &KeyValue) -> Array2<f32> {
        let q = self.to_q.forward(x);
        let out = attention(&q, &memory.k, &memory.v, self.heads, Mask::None);
        self.to_out.forward(&out)
    }
}

/// `FeedForward` with `gelu-approximate`.
#[derive(Debug)]
pub(crate) struct FeedForward {
    proj: Linear,
    out: Linear,
}

impl FeedForward {
    pub(crate) fn new(dim: usize, weights: &Weights) -> Result<Self> {
        let (net, inner) = (weights.pp("net"), FEED_FORWARD_MULT * dim);
        Ok(Self {
            proj: Linear::new(dim, inner, &net.pp(0).pp("proj"))?,
            out: Linear::new(inner, dim, &net.pp(2))?,
        })
    }

    pub(crate) fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        self.out.forward(&gelu_tanh(self.proj.forward(x)))
    }
}
