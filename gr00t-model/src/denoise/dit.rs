//! The diffusion transformer.
//!
//! Mirrors `DiT` and `BasicTransformerBlock` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>.

use gr00t_host::config::DiffusionModelConfig;
use tt_ops::{Device, MemoryConfig, ops};

use super::modulation::DitStep;
use crate::error::Result;
use crate::taps::Taps;
use crate::transformer_block::{CrossAttention, FeedForward, KeyValue, SelfAttention};
use crate::weights::{Activations, Affine, Linear, Loader, Precise};

/// Epsilon of the blocks' norms (`norm_eps`'s default).
const NORM_EPS: f32 = 1e-5;
/// Epsilon of the output norm.
const NORM_OUT_EPS: f32 = 1e-6;

/// `DiT`.
#[derive(Debug)]
pub(super) struct Dit<D: Device> {
    transformer_blocks: Vec<BasicTransformerBlock<D>>,
    proj_out_2: Linear<D>,
}

impl<D: Device> Dit<D> {
    pub(super) fn new(config: &DiffusionModelConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let blocks = weights.pp("transformer_blocks");
        Ok(Self {
            transformer_blocks: (0..config.num_layers)
                .map(|i| BasicTransformerBlock::new(config, i, &blocks.pp(i)))
                .collect::<Result<_>>()?,
            proj_out_2: Linear::new(config.inner_dim(), config.output_dim, "proj_out_2", weights)?,
        })
    }

    /// Keys and values of each block that attends to `memory [batch, sequence, cross_attention_dim]`.
    pub(super) fn key_values(&self, memory: &Activations<D>) -> Result<Vec<Option<KeyValue<D>>>> {
        self.transformer_blocks.iter().map(|block| block.key_value(memory)).collect()
    }

    /// Tokens `[batch, tokens, inner_dim]` to `[batch, tokens, output_dim]` in step number `k`.
    pub(super) fn forward(
        &self,
        mut x: Precise<D>,
        step: &DitStep<D>,
        memory: &[Option<KeyValue<D>>],
        mask: Option<&Activations<D>>,
        k: usize,
        taps: &Taps<'_, D>,
    ) -> Result<Activations<D>> {
        taps.keep(format_args!("step{k}.temb"), &step.temb);
        // A card norms these few rows by as many cores as have a part of them; each block's result stays where its input was.
        x = ops::to_memory_config(&x, MemoryConfig::L1_WIDTH_SHARDED)?;
        let blocks = self.transformer_blocks.iter().zip(&step.norm1).zip(memory).enumerate();
        for (i, ((block, norm1), memory)) in blocks {
            x = block.forward(&x, norm1, memory.as_ref(), mask)?;
            if taps.observed() {
                // What is kept must not take L1 from kernels, nor from other captures' replays.
                let kept = ops::to_memory_config(&x, MemoryConfig::DRAM)?;
                taps.keep(format_args!("step{k}.dit_block.{i}"), &kept);
            }
        }
        let x: Activations<D> = step.norm_out.layer_norm(&x, NORM_OUT_EPS)?;
        let x = self.proj_out_2.forward(&x)?;
        taps.keep(format_args!("step{k}.dit_out"), &x);
        Ok(x)
    }
}

/// What a block attends to.
#[derive(Debug)]
enum Attention<D: Device> {
    /// Even blocks: the observation only, not the tokens.
    Cross(CrossAttention<D>),
    /// Odd blocks: the tokens.
    Tokens(SelfAttention<D>),
}

/// `BasicTransformerBlock` with `norm_type="ada_norm"`: only `norm1` is modulated, and nothing is gated.
#[derive(Debug)]
struct BasicTransformerBlock<D: Device> {
    attn1: Attention<D>,
    ff: FeedForward<D>,
}

impl<D: Device> BasicTransformerBlock<D> {
    fn new(config: &DiffusionModelConfig, index: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, heads) = (config.inner_dim(), config.num_attention_heads);
        let attn1 = weights.pp("attn1");
        Ok(Self {
            attn1: if index.is_multiple_of(2) {
                Attention::Cross(CrossAttention::new(dim, heads, config.cross_attention_dim, &attn1)?)
            } else {
                Attention::Tokens(SelfAttention::new(dim, heads, &attn1)?)
            },
            ff: FeedForward::new(dim, &weights.pp("ff"))?,
        })
    }

    fn key_value(&self, memory: &Activations<D>) -> Result<Option<KeyValue<D>>> {
        match &self.attn1 {
            Attention::Cross(attn1) => attn1.key_value(memory).map(Some),
            Attention::Tokens(_) => Ok(None),
        }
    }

    fn forward(
        &self,
        x: &Precise<D>,
        norm1: &Affine<D>,
        memory: Option<&KeyValue<D>>,
        mask: Option<&Activations<D>>,
    ) -> Result<Precise<D>> {
        let n: Activations<D> = norm1.layer_norm(x, NORM_EPS)?;
        let x = match (&self.attn1, memory) {
            (Attention::Cross(attn1), Some(memory)) => attn1.add_to(x, &n, memory, mask)?,
            (Attention::Tokens(attn1), _) => attn1.add_to(x, &n, None)?,
            (Attention::Cross(_), None) => {
                return Err(crate::ModelError::Internal("a cross-attention block without keys and values"));
            }
        };
        let n: Activations<D> = ops::layer_norm(&x, ops::LayerNorm::new(NORM_EPS))?;
        self.ff.add_to(&x, &n)
    }
}
