//! Rotary position embedding by halves: element j of a head is paired with element j + head_dim / 2.
//!
//! Mirrors `Qwen3RotaryEmbedding` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/qwen3/modeling_qwen3.py>.

use gr00t_host::config::TextConfig;
use tt_ops::{Device, Tensor, ops};

use crate::error::Result;
use crate::weights::{Activations, Precise};

/// Tables of the positions 0..sequence, `[sequence, head_dim]` with both halves filled in.
#[derive(Debug)]
pub(crate) struct RotaryEmbedding<D: Device> {
    cos: Precise<D>,
    sin: Precise<D>,
}

impl<D: Device> RotaryEmbedding<D> {
    /// Angles are computed in f32 as upstream.
    pub(crate) fn new(device: &D, config: &TextConfig, sequence: usize) -> Result<Self> {
        let angles = angles(config, sequence);
        let table = |f: fn(f32) -> f32| {
            let values: Vec<f32> = angles.iter().copied().map(f).collect();
            Tensor::from_span(device, [sequence, config.head_dim], &values)
        };
        Ok(Self { cos: table(f32::cos)?, sin: table(f32::sin)? })
    }

    /// Every head of `x [batch, heads, sequence, head_dim]` rotated.
    pub(crate) fn forward(&self, x: &Activations<D>) -> Result<Activations<D>> {
        Ok(ops::rotary_embedding(x, &self.cos, &self.sin)?)
    }
}

fn angles(config: &TextConfig, sequence: usize) -> Vec<f32> {
    let (dim, theta) = (config.head_dim, config.rope_theta as f32);
    let half = dim / 2;
    let inv_freq: Vec<f32> = (0..half).map(|j| 1.0 / theta.powf((2 * j) as f32 / dim as f32)).collect();
    let angle = |i: usize| (i / dim) as f32 * inv_freq[i % dim % half];
    (0..sequence * dim).map(angle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_a_head_turn_by_the_same_angle() {
        let config = TextConfig { head_dim: 8, rope_theta: 1e6, ..TextConfig::default() };
        let angles = angles(&config, 3);
        assert_eq!(angles[..8], [0.0; 8]);
        assert_eq!(angles[8..12], angles[12..16]);
        assert_eq!(angles[8], 1.0);
        // 1e6^(-2/8) = 0.0316…
        assert!((angles[17] - 2.0 * 0.031_622_78).abs() < 1e-7);
    }
}
