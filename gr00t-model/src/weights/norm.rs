//! `LayerNorm` and RMSNorm on a device.

use tt_ops::{ActivationType, Device, Float, Tensor, ops};

use super::{Activations, Loader, Precise};
use crate::error::Result;

/// Weight and bias of a layer norm: a checkpoint's, or those of one denoising step.
#[derive(Debug)]
pub(crate) struct Affine<D: Device> {
    pub(crate) weight: Precise<D>,
    pub(crate) bias: Precise<D>,
}

/// `torch.nn.LayerNorm`.
#[derive(Debug)]
pub(crate) struct LayerNorm<D: Device> {
    affine: Affine<D>,
    eps: f32,
}

impl<D: Device> LayerNorm<D> {
    /// `weight` and `bias` `[dim]` at `weights`.
    pub(crate) fn new(dim: usize, eps: f64, weights: &Loader<'_, D>) -> Result<Self> {
        let affine = Affine { weight: weights.norm("weight", dim)?, bias: weights.norm("bias", dim)? };
        Ok(Self { affine, eps: eps as f32 })
    }

    /// Each row of `x` normalised.
    pub(crate) fn forward<T: Float, O: ActivationType>(&self, x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
        self.affine.layer_norm(x, self.eps)
    }
}

impl<D: Device> Affine<D> {
    /// Each row of `x` normalised, times the weight, plus the bias.
    pub(crate) fn layer_norm<T: Float, O: ActivationType>(
        &self,
        x: &Tensor<D, T>,
        eps: f32,
    ) -> Result<Tensor<D, O>> {
        Ok(ops::layer_norm(x, ops::LayerNorm::new(eps).weight(&self.weight).bias(&self.bias))?)
    }
}

/// `Qwen3RMSNorm`.
#[derive(Debug)]
pub(crate) struct RmsNorm<D: Device> {
    weight: Precise<D>,
    eps: f32,
}

impl<D: Device> RmsNorm<D> {
    /// `weight [dim]` at `weights`.
    pub(crate) fn new(dim: usize, eps: f64, weights: &Loader<'_, D>) -> Result<Self> {
        Ok(Self { weight: weights.norm("weight", dim)?, eps: eps as f32 })
    }

    /// Each row of `x` normalised.
    pub(crate) fn forward<T: Float>(&self, x: &Tensor<D, T>) -> Result<Activations<D>> {
        self.precise(x)
    }

    /// [`forward`](Self::forward) into the data type of the caller.
    pub(crate) fn precise<T: Float, O: ActivationType>(&self, x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
        Ok(ops::rms_norm(x, ops::RmsNorm::new(self.eps).weight(&self.weight))?)
    }
}
