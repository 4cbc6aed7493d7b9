//! One encoder layer of the vision tower: full attention within each image, then the MLP, both pre-norm.
//!
//! Mirrors `SiglipEncoderLayer` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/siglip/modeling_siglip.py>.

use gr00t_host::config::VisionConfig;
use tt_ops::ops::{self, Heads, Sdpa};
use tt_ops::{Activation, Device};

use crate::error::Result;
use crate::weights::{Activations, LayerNorm, Linear, Loader, Precise};

/// `SiglipEncoderLayer`.
#[derive(Debug)]
pub(super) struct SiglipEncoderLayer<D: Device> {
    layer_norm1: LayerNorm<D>,
    self_attn: SiglipAttention<D>,
    layer_norm2: LayerNorm<D>,
    mlp: SiglipMlp<D>,
}

impl<D: Device> SiglipEncoderLayer<D> {
    pub(super) fn new(config: &VisionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, eps) = (config.hidden_size, config.layer_norm_eps);
        Ok(Self {
            layer_norm1: LayerNorm::new(dim, eps, &weights.pp("layer_norm1"))?,
            self_attn: SiglipAttention::new(config, &weights.pp("self_attn"))?,
            layer_norm2: LayerNorm::new(dim, eps, &weights.pp("layer_norm2"))?,
            mlp: SiglipMlp::new(config, &weights.pp("mlp"))?,
        })
    }

    pub(super) fn forward(&self, x: &Precise<D>) -> Result<Precise<D>> {
        let x = self.self_attn.add_to(x, &self.layer_norm1.forward(x)?)?;
        self.mlp.add_to(&x, &self.layer_norm2.forward(&x)?)
    }
}

/// `SiglipAttention`; Q, K and V are one matmul.
#[derive(Debug)]
struct SiglipAttention<D: Device> {
    qkv: Linear<D>,
    out_proj: Linear<D>,
    heads: Heads,
}

impl<D: Device> SiglipAttention<D> {
    fn new(config: &VisionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let dim = config.hidden_size;
        Ok(Self {
            qkv: Linear::fused(dim, &[("q_proj", dim), ("k_proj", dim), ("v_proj", dim)], weights)?,
            out_proj: Linear::new(dim, dim, "out_proj", weights)?,
            heads: Heads::new(config.num_attention_heads),
        })
    }

    fn add_to(&self, residual: &Precise<D>, x: &Activations<D>) -> Result<Precise<D>> {
        let qkv: Activations<D> = self.qkv.forward(x)?;
        let (q, k, v) = ops::split_query_key_value_and_split_heads(&qkv, None, self.heads)?;
        let x = ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new())?;
        self.out_proj.add_to(residual, &ops::concatenate_heads(&x)?)
    }
}

/// `SiglipMLP`.
#[derive(Debug)]
struct SiglipMlp<D: Device> {
    fc1: Linear<D>,
    fc2: Linear<D>,
}

impl<D: Device> SiglipMlp<D> {
    fn new(config: &VisionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            fc1: Linear::new(dim, inner, "fc1", weights)?,
            fc2: Linear::new(inner, dim, "fc2", weights)?,
        })
    }

    fn add_to(&self, residual: &Precise<D>, x: &Activations<D>) -> Result<Precise<D>> {
        let x: Activations<D> = self.fc1.activate(x, Activation::GeluTanh)?;
        self.fc2.add_to(residual, &x)
    }
}
