//! Time embedding and the modulation of every adaptive norm: functions of the time bucket alone, computed once, in fp32.
//!
//! Mirrors `TimestepEncoder`, `AdaLayerNorm` and the output modulation of `DiT` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/cross_attention_dit.py>. What they scale and shift
//! becomes weight and bias of a layer norm: `LN(x) · (1 + scale) + shift`.

use gr00t_host::config::DiffusionModelConfig;
use tt_ops::{Activation, Device, ops};

use super::time::timestep_embedding;
use crate::error::Result;
use crate::weights::{Affine, Linear, Loader, Precise};

/// Channels of the sinusoid that the time embedding starts from.
const TIME_CHANNELS: usize = 256;

/// What the DiT reads of one time bucket.
#[derive(Debug)]
pub(crate) struct DitStep<D: Device> {
    /// The time embedding `[1, dim]`, for observers.
    pub(super) temb: Precise<D>,
    /// `norm1` of each block.
    pub(super) norm1: Vec<Affine<D>>,
    /// The output norm.
    pub(super) norm_out: Affine<D>,
}

/// One value per time bucket; `weights` is at `model`, in fp32.
pub(super) fn dit_steps<D: Device>(
    config: &DiffusionModelConfig,
    timesteps: &[usize],
    weights: &Loader<'_, D>,
) -> Result<Vec<DitStep<D>>> {
    let (dim, count) = (config.inner_dim(), timesteps.len());
    let temb = timestep_encoder(dim, timesteps, &weights.pp("timestep_encoder").pp("timestep_embedder"))?;
    let silu: Precise<D> = ops::silu(&temb)?;

    let mut steps: Vec<DitStep<D>> = Vec::with_capacity(count);
    let [shift, scale] = chunk2(&Linear::new(dim, 2 * dim, "proj_out_1", weights)?.forward(&silu)?)?;
    for (k, norm_out) in affines(&scale, &shift, count)?.into_iter().enumerate() {
        steps.push(DitStep { temb: ops::slice_dim(&temb, 0, k..k + 1)?, norm1: Vec::new(), norm_out });
    }
    for i in 0..config.num_layers {
        let norm1 = weights.pp("transformer_blocks").pp(i).pp("norm1");
        let [scale, shift] = chunk2(&Linear::new(dim, 2 * dim, "linear", &norm1)?.forward(&silu)?)?;
        for (step, norm1) in steps.iter_mut().zip(affines(&scale, &shift, count)?) {
            step.norm1.push(norm1);
        }
    }
    Ok(steps)
}

/// `TimestepEncoder`: `[timesteps, dim]`.
fn timestep_encoder<D: Device>(
    dim: usize,
    timesteps: &[usize],
    weights: &Loader<'_, D>,
) -> Result<Precise<D>> {
    let tables: Vec<f32> = timesteps.iter().flat_map(|&t| timestep_embedding(t, TIME_CHANNELS)).collect();
    let x = weights.scratch([timesteps.len(), TIME_CHANNELS], &tables)?;
    let x: Precise<D> =
        Linear::new(TIME_CHANNELS, dim, "linear_1", weights)?.activate(&x, Activation::Silu)?;
    Linear::new(dim, dim, "linear_2", weights)?.forward(&x)
}

/// Both halves of the columns.
fn chunk2<D: Device>(x: &Precise<D>) -> Result<[Precise<D>; 2]> {
    let half = x.shape().last() / 2;
    Ok([ops::slice_dim(x, -1, 0..half)?, ops::slice_dim(x, -1, half..2 * half)?])
}

/// `1 + scale` and `shift` of each of `count` rows.
fn affines<D: Device>(scale: &Precise<D>, shift: &Precise<D>, count: usize) -> Result<Vec<Affine<D>>> {
    let weight: Precise<D> = ops::add(scale, 1.0)?;
    (0..count)
        .map(|k| {
            let (weight, bias) = (ops::slice_dim(&weight, 0, k..k + 1)?, ops::slice_dim(shift, 0, k..k + 1)?);
            Ok(Affine { weight, bias })
        })
        .collect()
}
