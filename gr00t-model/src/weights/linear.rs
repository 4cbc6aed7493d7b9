//! `torch.nn.Linear` on a device, and its fused forms.

use tt_ops::{Activation, ActivationType, Device, Float, Tensor, Weight, ops};

use super::{Loader, Precise};
use crate::error::Result;

/// A matmul weight and, where there is one, its bias.
#[derive(Debug)]
pub(crate) struct Linear<D: Device> {
    weight: Weight<D>,
    bias: Option<Precise<D>>,
}

impl<D: Device> Linear<D> {
    /// `name.weight [out, inputs]` and `name.bias [out]` at `weights`.
    pub(crate) fn new(inputs: usize, out: usize, name: &str, weights: &Loader<'_, D>) -> Result<Self> {
        Self::fused(inputs, &[(name, out)], weights)
    }

    /// Several layers with biases that read the same input, as one matmul: their results side by side.
    pub(crate) fn fused(inputs: usize, parts: &[(&str, usize)], weights: &Loader<'_, D>) -> Result<Self> {
        let bias = Some(weights.fused_bias(parts)?);
        Ok(Self { weight: weights.fused_out_in(inputs, parts)?, bias })
    }

    /// [`fused`](Self::fused) of layers without biases.
    pub(crate) fn fused_no_bias(
        inputs: usize,
        parts: &[(&str, usize)],
        weights: &Loader<'_, D>,
    ) -> Result<Self> {
        Ok(Self { weight: weights.fused_out_in(inputs, parts)?, bias: None })
    }

    /// A convolution `[out, channels, kernel, kernel]` whose stride is its kernel, over flattened patches.
    pub(crate) fn convolution(shape: [usize; 4], name: &str, weights: &Loader<'_, D>) -> Result<Self> {
        let bias = Some(weights.fused_bias(&[(name, shape[0])])?);
        Ok(Self { weight: weights.pp(name).conv_out_in(shape)?, bias })
    }

    /// Slot `slot` of `W [slots, inputs, out]` and `b [slots, out]` at `weights`.
    pub(crate) fn category(shape: [usize; 3], slot: usize, weights: &Loader<'_, D>) -> Result<Self> {
        let bias = Some(weights.category_bias(shape[0], shape[2], slot)?);
        Ok(Self { weight: weights.category(shape, slot, 0..shape[1])?, bias })
    }

    /// `x · w + b`.
    pub(crate) fn forward<T: Float, O: ActivationType>(&self, x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
        Ok(ops::linear(x, &self.weight, ops::Linear::new().maybe_bias(self.bias.as_ref()))?)
    }

    /// `activation(x · w + b)`.
    pub(crate) fn activate<T: Float, O: ActivationType>(
        &self,
        x: &Tensor<D, T>,
        activation: Activation,
    ) -> Result<Tensor<D, O>> {
        let args = ops::Linear::new().maybe_bias(self.bias.as_ref()).activation(activation);
        Ok(ops::linear(x, &self.weight, args)?)
    }

    /// `x · w + b + residual`.
    pub(crate) fn add_to<T: Float>(&self, residual: &Precise<D>, x: &Tensor<D, T>) -> Result<Precise<D>> {
        let args = ops::Linear::new().maybe_bias(self.bias.as_ref()).residual(residual);
        Ok(ops::linear(x, &self.weight, args)?)
    }
}
