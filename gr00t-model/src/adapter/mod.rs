//! The adapter between backbone and action head: `vlln` and `vl_self_attention`.
//!
//! Mirrors `process_backbone_output` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py> and
//! `SelfAttentionTransformer` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>.

mod block;

use gr00t_host::config::ActionHeadConfig;
use tt_ops::{Device, ops};

use crate::error::Result;
use crate::taps::Taps;
use crate::weights::{Activations, LayerNorm, Loader, Precise};
use block::BasicTransformerBlock;

/// `torch.nn.LayerNorm`'s default, which `vlln` and the blocks use.
const NORM_EPS: f64 = 1e-5;

/// `vlln` and `vl_self_attention`.
#[derive(Debug)]
pub(crate) struct Adapter<D: Device> {
    vlln: LayerNorm<D>,
    transformer_blocks: Vec<BasicTransformerBlock<D>>,
}

impl<D: Device> Adapter<D> {
    /// Weights below `action_head`.
    pub(crate) fn new(config: &ActionHeadConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let blocks = weights.pp("vl_self_attention").pp("transformer_blocks");
        let attention = &config.vl_self_attention_cfg;
        Ok(Self {
            vlln: LayerNorm::new(config.backbone_embedding_dim, NORM_EPS, &weights.pp("vlln"))?,
            transformer_blocks: (0..attention.num_layers)
                .map(|i| BasicTransformerBlock::new(attention, &blocks.pp(i)))
                .collect::<Result<_>>()?,
        })
    }

    /// Backbone features `[batch, sequence, dim]` to the DiT's cross-attention memory, all positions.
    ///
    /// `mask [batch, 1, sequence, sequence]` hides padding where there may be some.
    pub(crate) fn forward(
        &self,
        features: &Precise<D>,
        mask: Option<&Activations<D>>,
        taps: &Taps<'_, D>,
    ) -> Result<Activations<D>> {
        let mut x = self.vlln.forward(features)?;
        taps.keep("adapter.vlln", &x);
        for (i, block) in self.transformer_blocks.iter().enumerate() {
            x = block.forward(&x, mask)?;
            taps.keep(format_args!("adapter.block.{i}"), &x);
        }
        taps.keep("adapter.out", &x);
        // the keys and values of the cross-attentions are all that is read of it
        Ok(ops::typecast(&x)?)
    }
}
