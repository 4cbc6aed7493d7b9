//! `ttnn.layer_norm`, `ttnn.rms_norm`.

#![allow(clippy::needless_pass_by_value, reason = "arguments are made for one call")]

use super::{run_one, same_device};
use crate::compute::ComputeKernelConfig;
use crate::device::Device;
use crate::dtype::{Activation as ActivationType, Float};
use crate::error::{Result, TtError};
use crate::layout::MemoryConfig;
use crate::op::Op;
use crate::tensor::{Tensor, TensorRef};

/// Arguments of [`layer_norm`] beside its operand.
#[derive(Debug)]
pub struct LayerNorm<'a, D: Device> {
    epsilon: f32,
    weight: Option<TensorRef<'a, D>>,
    bias: Option<TensorRef<'a, D>>,
    memory_config: MemoryConfig,
    compute: ComputeKernelConfig,
}

impl<'a, D: Device> LayerNorm<'a, D> {
    /// No weight, no bias.
    pub fn new(epsilon: f32) -> Self {
        Self {
            epsilon,
            weight: None,
            bias: None,
            memory_config: MemoryConfig::default(),
            compute: ComputeKernelConfig::default(),
        }
    }

    /// Multiplies by `weight [n]`, `float32` or `bfloat16`. Adaptive norms give the weight of the step.
    #[must_use]
    pub fn weight(mut self, weight: impl Into<TensorRef<'a, D>>) -> Self {
        self.weight = Some(weight.into());
        self
    }

    /// Adds `bias [n]`, `float32` or `bfloat16`.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<TensorRef<'a, D>>) -> Self {
        self.bias = Some(bias.into());
        self
    }

    /// Places the result.
    #[must_use]
    pub fn memory_config(mut self, memory_config: MemoryConfig) -> Self {
        self.memory_config = memory_config;
        self
    }

    /// Sets the precision.
    #[must_use]
    pub fn compute(mut self, compute: ComputeKernelConfig) -> Self {
        self.compute = compute;
        self
    }
}

/// `(x - mean) / sqrt(variance + epsilon) · weight + bias` of each row `[n]` (`ttnn.layer_norm`). Statistics are
/// fp32.
///
/// # Errors
/// A weight or bias of another length; a bias without a weight.
pub fn layer_norm<D: Device, T: Float, O: ActivationType>(
    x: &Tensor<D, T>,
    args: LayerNorm<'_, D>,
) -> Result<Tensor<D, O>> {
    let op = Op::LayerNorm {
        epsilon: args.epsilon,
        weight: args.weight.is_some(),
        bias: args.bias.is_some(),
        dtype: O::DATA_TYPE,
        memory_config: args.memory_config,
        compute: args.compute,
    };
    if args.bias.is_some() && args.weight.is_none() {
        return Err(TtError::argument(op.name(), "a bias without a weight", "both, or the weight alone"));
    }
    with_parameters(x, &op, [args.weight, args.bias])
}

/// Arguments of [`rms_norm`] beside its operand.
#[derive(Debug)]
pub struct RmsNorm<'a, D: Device> {
    epsilon: f32,
    weight: Option<TensorRef<'a, D>>,
    memory_config: MemoryConfig,
    compute: ComputeKernelConfig,
}

impl<'a, D: Device> RmsNorm<'a, D> {
    /// No weight.
    pub fn new(epsilon: f32) -> Self {
        Self {
            epsilon,
            weight: None,
            memory_config: MemoryConfig::default(),
            compute: ComputeKernelConfig::default(),
        }
    }

    /// Multiplies by `weight [n]`, `float32` or `bfloat16`.
    #[must_use]
    pub fn weight(mut self, weight: impl Into<TensorRef<'a, D>>) -> Self {
        self.weight = Some(weight.into());
        self
    }

    /// Places the result.
    #[must_use]
    pub fn memory_config(mut self, memory_config: MemoryConfig) -> Self {
        self.memory_config = memory_config;
        self
    }

    /// Sets the precision.
    #[must_use]
    pub fn compute(mut self, compute: ComputeKernelConfig) -> Self {
        self.compute = compute;
        self
    }
}

/// `x / sqrt(mean(x²) + epsilon) · weight` of each row `[n]` (`ttnn.rms_norm`). Statistics are fp32.
///
/// # Errors
/// A weight of another length.
pub fn rms_norm<D: Device, T: Float, O: ActivationType>(
    x: &Tensor<D, T>,
    args: RmsNorm<'_, D>,
) -> Result<Tensor<D, O>> {
    let op = Op::RmsNorm {
        epsilon: args.epsilon,
        weight: args.weight.is_some(),
        dtype: O::DATA_TYPE,
        memory_config: args.memory_config,
        compute: args.compute,
    };
    with_parameters(x, &op, [args.weight, None])
}

fn with_parameters<D: Device, T: Float, O: ActivationType>(
    x: &Tensor<D, T>,
    op: &Op,
    parameters: [Option<TensorRef<'_, D>>; 2],
) -> Result<Tensor<D, O>> {
    let mut inputs = vec![x.input()];
    for parameter in parameters.iter().flatten() {
        same_device(op.name(), x.device(), &[parameter.device()])?;
        inputs.push(parameter.input());
    }
    run_one(x.device(), op, &inputs)
}
