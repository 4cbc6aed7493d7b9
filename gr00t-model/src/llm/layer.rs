//! One decoder layer of Qwen3: attention and gated MLP, both pre-norm.
//!
//! Mirrors `Qwen3DecoderLayer` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/qwen3/modeling_qwen3.py>.

use gr00t_host::config::TextConfig;
use tt_ops::{Device, ops};

use super::attention::Qwen3Attention;
use super::rope::RotaryEmbedding;
use crate::error::Result;
use crate::weights::{Activations, Linear, Loader, Precise, RmsNorm};

/// `Qwen3DecoderLayer`.
#[derive(Debug)]
pub(super) struct Qwen3DecoderLayer<D: Device> {
    input_layernorm: RmsNorm<D>,
    self_attn: Qwen3Attention<D>,
    post_attention_layernorm: RmsNorm<D>,
    mlp: Qwen3Mlp<D>,
}

impl<D: Device> Qwen3DecoderLayer<D> {
    pub(super) fn new(config: &TextConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let norm = |name| RmsNorm::new(config.hidden_size, config.rms_norm_eps, &weights.pp(name));
        Ok(Self {
            input_layernorm: norm("input_layernorm")?,
            self_attn: Qwen3Attention::new(config, &weights.pp("self_attn"))?,
            post_attention_layernorm: norm("post_attention_layernorm")?,
            mlp: Qwen3Mlp::new(config, &weights.pp("mlp"))?,
        })
    }

    pub(super) fn forward(&self, x: &Precise<D>, rotary: &RotaryEmbedding<D>) -> Result<Precise<D>> {
        let x = self.self_attn.add_to(x, &self.input_layernorm.forward(x)?, rotary)?;
        self.mlp.add_to(&x, &self.post_attention_layernorm.forward(&x)?)
    }
}

/// `Qwen3MLP`; up and gate are one matmul, in the order that `swiglu` wants.
#[derive(Debug)]
struct Qwen3Mlp<D: Device> {
    up_gate_proj: Linear<D>,
    down_proj: Linear<D>,
}

impl<D: Device> Qwen3Mlp<D> {
    fn new(config: &TextConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            up_gate_proj: Linear::fused_no_bias(dim, &[("up_proj", inner), ("gate_proj", inner)], weights)?,
            down_proj: Linear::fused_no_bias(inner, &[("down_proj", dim)], weights)?,
        })
    }

    fn add_to(&self, residual: &Precise<D>, x: &Activations<D>) -> Result<Precise<D>> {
        let up_gate: Activations<D> = self.up_gate_proj.forward(x)?;
        let x: Activations<D> = ops::swiglu(&up_gate)?;
        self.down_proj.add_to(residual, &x)
    }
}
