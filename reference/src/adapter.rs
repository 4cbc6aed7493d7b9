//! The adapter between backbone and action head: `vlln` and `vl_self_attention`.
//!
//! Mirrors `process_backbone_output` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py> and
//! `SelfAttentionTransformer` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>.

use gr00t_host::Weights;
use gr00t_host::config::{ActionHeadConfig, VlSelfAttentionConfig};
use ndarray::Array2;

use crate::block::{Attention, FeedForward, ToKeyValue};
use crate::nn::{Heads, LayerNorm};
use crate::{Observer, Part, Result};

/// `torch.nn.LayerNorm`'s default, which `vlln` and the blocks use.
const NORM_EPS: f64 = 1e-5;

/// Backbone features `[S, dim]` to the DiT's cross-attention memory `[S, dim]`, all positions.
pub(crate) fn process_backbone_output(
    config: &ActionHeadConfig,
    weights: &Weights,
    features: &Array2<f32>,
    observer: &mut dyn Observer,
) -> Result<Array2<f32>> {
    let vlln = LayerNorm::new(config.backbone_embedding_dim, NORM_EPS, &weights.pp("vlln"))?;
    let mut x = vlln.forward(features);
    observer.stage("adapter.vlln", x.view());

    let blocks = weights.pp("vl_self_attention").pp("transformer_blocks");
    let config = &config.vl_self_attention_cfg;
    for i in 0..config.num_layers {
        x = BasicTransformerBlock::new(config, &blocks.pp(i))?.forward(x);
        observer.stage(&format!("adapter.block.{i}"), x.view());
        observer.progress(Part::Adapter, i + 1, config.num_layers);
    }
    observer.stage("adapter.out", x.view());
    Ok(x)
}

/// `BasicTransformerBlock` with `norm_type="layer_norm"`: both norms are affine, no mask, no positions.
struct BasicTransformerBlock {
    norm1: LayerNorm,
    attn1: Attention,
    attn1_memory: ToKeyValue,
    norm3: LayerNorm,
    ff: FeedForward,
}

impl BasicTransformerBlock {
    fn new(config: &VlSelfAttentionConfig, weights: &Weights) -> Result<Self> {
        let dim = config.inner_dim();
        let heads = Heads::multi_head(config.num_attention_heads, config.attention_head_dim);
        Ok(Self {
            norm1: LayerNorm::new(dim, NORM_EPS, &weights.pp("norm1"))?,
            attn1: Attention::new(heads, &weights.pp("attn1"))?,
            attn1_memory: ToKeyValue::new(dim, heads, &weights.pp("attn1"))?,
            norm3: LayerNorm::new(dim, NORM_EPS, &weights.pp("norm3"))?,
            ff: FeedForward::new(dim, &weights.pp("ff"))?,
        })
    }

    fn forward(&self, mut x: Array2<f32>) -> Array2<f32> {
        let normed = self.norm1.forward(&x);
        x += &self.attn1.forward(&normed, &self.attn1_memory.forward(&normed));
        x += &self.ff.forward(&self.norm3.forward(&x));
        x
    }
}
