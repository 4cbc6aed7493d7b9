//! The diffusion transformer.
//!
//! Mirrors `DiT`, `AdaLayerNorm` and `BasicTransformerBlock` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>, and
//! `get_timestep_embedding` of
//! <https://github.com/huggingface/diffusers/blob/v0.30.2/src/diffusers/models/embeddings.py>.

use gr00t_host::Weights;
use gr00t_host::config::DiffusionModelConfig;
use ndarray::{Array2, ArrayRef2, ArrayView2, Axis};

use crate::block::{Attention, FeedForward, KeyValue, ToKeyValue};
use crate::nn::{Heads, LayerNorm, Linear, silu};
use crate::{Observer, Part, Result};

/// Epsilon of the blocks' norms (`norm_eps`'s default).
const NORM_EPS: f64 = 1e-5;
/// Epsilon of the output norm.
const NORM_OUT_EPS: f64 = 1e-6;
/// Channels of the sinusoid that the time embedding starts from.
const TIME_CHANNELS: usize = 256;
/// Longest period of that sinusoid.
const MAX_PERIOD: f32 = 10_000.0;

/// `DiT`, with the memory of one observation.
#[derive(Debug)]
pub(crate) struct Dit {
    timestep_encoder: TimestepEncoder,
    transformer_blocks: Vec<BasicTransformerBlock>,
    norm_out: LayerNorm,
    proj_out_1: Linear,
    proj_out_2: Linear,
}

impl Dit {
    /// Reads all weights; even blocks turn `memory` (the adapter's output, `[S, cross_attention_dim]`) into their
    /// keys and values, which are the same in every step.
    pub(crate) fn new(
        config: &DiffusionModelConfig,
        weights: &Weights,
        memory: &Array2<f32>,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let dim = config.inner_dim();
        let blocks = weights.pp("transformer_blocks");
        let mut transformer_blocks = Vec::with_capacity(config.num_layers);
        for i in 0..config.num_layers {
            let memory = i.is_multiple_of(2).then_some(memory);
            transformer_blocks.push(BasicTransformerBlock::new(config, &blocks.pp(i), memory)?);
            observer.progress(Part::ActionHead, i + 1, config.num_layers);
        }
        Ok(Self {
            timestep_encoder: TimestepEncoder::new(dim, &weights.pp("timestep_encoder"))?,
            transformer_blocks,
            norm_out: LayerNorm::no_affine(NORM_OUT_EPS),
            proj_out_1: Linear::new(dim, 2 * dim, &weights.pp("proj_out_1"))?,
            proj_out_2: Linear::new(dim, config.output_dim, &weights.pp("proj_out_2"))?,
        })
    }

    /// Tokens `[T, inner_dim]` at time bucket `timestep` to `[T, output_dim]`; stages are named `{step}.…`.
    pub(crate) fn forward(
        &self,
        mut x: Array2<f32>,
        timestep: usize,
        step: &str,
        observer: &mut dyn Observer,
    ) -> Array2<f32> {
        let temb = self.timestep_encoder.forward(timestep);
        observer.stage(&format!("{step}.temb"), temb.view());

        for (i, block) in self.transformer_blocks.iter().enumerate() {
            x = block.forward(x, &temb);
            observer.stage(&format!("{step}.dit_block.{i}"), x.view());
        }

        let modulation = self.proj_out_1.forward(&silu(temb));
        let (shift, scale) = chunk2(&modulation);
        let x = self.proj_out_2.forward(&modulate(self.norm_out.forward(&x), &scale, &shift));
        observer.stage(&format!("{step}.dit_out"), x.view());
        x
    }
}

/// `TimestepEncoder`.
#[derive(Debug)]
struct TimestepEncoder {
    linear_1: Linear,
    linear_2: Linear,
}

impl TimestepEncoder {
    fn new(dim: usize, weights: &Weights) -> Result<Self> {
        let weights = weights.pp("timestep_embedder");
        Ok(Self {
            linear_1: Linear::new(TIME_CHANNELS, dim, &weights.pp("linear_1"))?,
            linear_2: Linear::new(dim, dim, &weights.pp("linear_2"))?,
        })
    }

    /// `[1, inner_dim]`.
    fn forward(&self, timestep: usize) -> Array2<f32> {
        self.linear_2.forward(&silu(self.linear_1.forward(&timestep_embedding(timestep))))
    }
}

/// `[1, TIME_CHANNELS]`: `[cos, sin]` (`flip_sin_to_cos`) at frequencies from 1 down to exactly `1 / MAX_PERIOD`
/// (`downscale_freq_shift` 1); f32 as upstream.
fn timestep_embedding(timestep: usize) -> Array2<f32> {
    let half = TIME_CHANNELS / 2;
    Array2::from_shape_fn((1, TIME_CHANNELS), |(_, i)| {
        let frequency = (-MAX_PERIOD.ln() * (i % half) as f32 / (half - 1) as f32).exp();
        let angle = timestep as f32 * frequency;
        if i < half { angle.cos() } else { angle.sin() }
    })
}

/// Where a block's keys and values come from.
#[derive(Debug)]
enum Memory {
    /// Even blocks: the observation, the same in every step.
    Observation(KeyValue),
    /// Odd blocks: the block's own tokens.
    Tokens(ToKeyValue),
}

/// `BasicTransformerBlock` with `norm_type="ada_norm"`: only `norm1` is modulated, and nothing is gated.
#[derive(Debug)]
struct BasicTransformerBlock {
    norm1: AdaLayerNorm,
    attn1: Attention,
    memory: Memory,
    norm3: LayerNorm,
    ff: FeedForward,
}

impl BasicTransformerBlock {
    /// A cross-attention block if there is a `memory`, else a self-attention block.
    fn new(config: &DiffusionModelConfig, weights: &Weights, memory: Option<&Array2<f32>>) -> Result<Self> {
        let dim = config.inner_dim();
        let heads = Heads::multi_head(config.num_attention_heads, config.attention_head_dim);
        let attn1 = weights.pp("attn1");
        let memory = if let Some(memory) = memory {
            let to_key_value = ToKeyValue::new(config.cross_attention_dim, heads, &attn1)?;
            Memory::Observation(to_key_value.forward(memory))
        } else {
            Memory::Tokens(ToKeyValue::new(dim, heads, &attn1)?)
        };
        Ok(Self {
            norm1: AdaLayerNorm::new(dim, &weights.pp("norm1"))?,
            attn1: Attention::new(heads, &attn1)?,
            memory,
            norm3: LayerNorm::no_affine(NORM_EPS),
            ff: FeedForward::new(dim, &weights.pp("ff"))?,
        })
    }

    fn forward(&self, mut x: Array2<f32>, temb: &Array2<f32>) -> Array2<f32> {
        let normed = self.norm1.forward(&x, temb);
        x += &match &self.memory {
            Memory::Observation(memory) => self.attn1.forward(&normed, memory),
            Memory::Tokens(to_key_value) => self.attn1.forward(&normed, &to_key_value.forward(&normed)),
        };
        x += &self.ff.forward(&self.norm3.forward(&x));
        x
    }
}

/// `AdaLayerNorm`: the first half of `linear`'s output is the scale, the second the shift.
#[derive(Debug)]
struct AdaLayerNorm {
    linear: Linear,
    norm: LayerNorm,
}

impl AdaLayerNorm {
    fn new(dim: usize, weights: &Weights) -> Result<Self> {
        Ok(Self {
            linear: Linear::new(dim, 2 * dim, &weights.pp("linear"))?,
            norm: LayerNorm::no_affine(NORM_EPS),
        })
    }

    fn forward(&self, x: &Array2<f32>, temb: &Array2<f32>) -> Array2<f32> {
        let modulation = self.linear.forward(&silu(temb.clone()));
        let (scale, shift) = chunk2(&modulation);
        modulate(self.norm.forward(x), &scale, &shift)
    }
}

/// Both halves of the columns.
fn chunk2(x: &Array2<f32>) -> (ArrayView2<'_, f32>, ArrayView2<'_, f32>) {
    x.view().split_at(Axis(1), x.ncols() / 2)
}

/// `x * (1 + scale) + shift`, the same for every row.
fn modulate(x: Array2<f32>, scale: &ArrayRef2<f32>, shift: &ArrayRef2<f32>) -> Array2<f32> {
    x * (scale + 1.0) + shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_timestep_frequency_is_one_over_the_period() {
        let embedding = timestep_embedding(750);
        let half = TIME_CHANNELS / 2;
        approx::assert_abs_diff_eq!(embedding[[0, half - 1]], 0.075_f32.cos(), epsilon = 1e-6);
        approx::assert_abs_diff_eq!(embedding[[0, TIME_CHANNELS - 1]], 0.075_f32.sin(), epsilon = 1e-6);
    }
}
