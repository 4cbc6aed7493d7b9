//! `ttnn.linear`, `ttnn.matmul`.

#![allow(clippy::needless_pass_by_value, reason = "arguments are made for one call")]

use super::{run_one, same_device};
use crate::compute::ComputeKernelConfig;
use crate::device::Device;
use crate::dtype::{Activation as ActivationType, Float};
use crate::error::Result;
use crate::layout::{CoreGrid, MemoryConfig};
use crate::op::{Activation, Op};
use crate::program::MatmulProgramConfig;
use crate::tensor::{Tensor, TensorRef};
use crate::weight::Weight;

/// Arguments of [`linear`] beside its operands.
#[derive(Debug)]
pub struct Linear<'a, D: Device, O: ActivationType> {
    bias: Option<TensorRef<'a, D>>,
    activation: Option<Activation>,
    residual: Option<&'a Tensor<D, O>>,
    memory_config: Option<MemoryConfig>,
    compute: ComputeKernelConfig,
    program_config: Option<MatmulProgramConfig>,
    core_grid: Option<CoreGrid>,
}

impl<D: Device, O: ActivationType> Default for Linear<'_, D, O> {
    fn default() -> Self {
        Self {
            bias: None,
            activation: None,
            residual: None,
            memory_config: None,
            compute: ComputeKernelConfig::default(),
            program_config: None,
            core_grid: None,
        }
    }
}

impl<'a, D: Device, O: ActivationType> Linear<'a, D, O> {
    /// No bias, no activation, no residual.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `bias [n]`, `float32` or `bfloat16`.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<TensorRef<'a, D>>) -> Self {
        self.bias = Some(bias.into());
        self
    }

    /// Adds a bias if there is one.
    #[must_use]
    pub fn maybe_bias<T: crate::dtype::Dtype>(mut self, bias: Option<&'a Tensor<D, T>>) -> Self {
        self.bias = bias.map(Into::into);
        self
    }

    /// Applies `activation` after the bias.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = Some(activation);
        self
    }

    /// Applies an activation if there is one.
    #[must_use]
    pub fn maybe_activation(mut self, activation: Option<Activation>) -> Self {
        self.activation = activation;
        self
    }

    /// Adds `residual`, of the result's shape and type, after the activation, before the one rounding of the result.
    /// The software device does it in the matmul's epilogue, and in place in a trace where the residual is not used
    /// again; on the card it is an `add`.
    #[must_use]
    pub fn residual(mut self, residual: &'a Tensor<D, O>) -> Self {
        self.residual = Some(residual);
        self
    }

    /// Places the result; else it is where the residual is, or interleaved in DRAM.
    #[must_use]
    pub fn memory_config(mut self, memory_config: MemoryConfig) -> Self {
        self.memory_config = Some(memory_config);
        self
    }

    /// Spreads the product over cores in this way and no other.
    #[must_use]
    pub fn program_config(mut self, program_config: MatmulProgramConfig) -> Self {
        self.program_config = Some(program_config);
        self
    }

    /// Leaves the device's own rule these cores alone.
    #[must_use]
    pub fn core_grid(mut self, core_grid: CoreGrid) -> Self {
        self.core_grid = Some(core_grid);
        self
    }

    /// Sets the precision.
    #[must_use]
    pub fn compute(mut self, compute: ComputeKernelConfig) -> Self {
        self.compute = compute;
        self
    }
}

/// `activation(x · w + bias) + residual`: `x [.., m, k]`, `w [k, n]` → `[.., m, n]` (`ttnn.linear`).
///
/// Sums are fp32 and rounded once to `O`. With a weight that is not `float32`, `x` is rounded to `bfloat16` first, as on
/// the card.
///
/// # Errors
/// Extents, data types or layouts that do not fit; a program config together with a core grid; what the card refuses of either.
pub fn linear<D: Device, T: Float, O: ActivationType>(
    x: &Tensor<D, T>,
    w: &Weight<D>,
    args: Linear<'_, D, O>,
) -> Result<Tensor<D, O>> {
    let placed = args.memory_config.or(args.residual.map(|residual| residual.spec().memory_config));
    let op = Op::Linear {
        bias: args.bias.is_some(),
        activation: args.activation,
        residual: args.residual.is_some(),
        dtype: O::DATA_TYPE,
        memory_config: placed.unwrap_or_default(),
        compute: args.compute,
        program_config: args.program_config,
        core_grid: args.core_grid,
    };
    let mut inputs = vec![x.input(), w.input()];
    let mut devices = vec![w.device()];
    if let Some(bias) = &args.bias {
        inputs.push(bias.input());
        devices.push(bias.device());
    }
    if let Some(residual) = args.residual {
        inputs.push(residual.input());
        devices.push(residual.device());
    }
    same_device(op.name(), x.device(), &devices)?;
    run_one(x.device(), &op, &inputs)
}

/// Arguments of [`matmul`] beside its operands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Matmul {
    /// Read `a` as `[.., k, m]`.
    pub transpose_a: bool,
    /// Read `b` as `[.., n, k]`.
    pub transpose_b: bool,
    /// Precision.
    pub compute: ComputeKernelConfig,
}

/// `a · b` of two tensors: `[.., m, k]`, `[.., k, n]` → `[.., m, n]`; leading extents of `b` may be 1
/// (`ttnn.matmul`).
///
/// For weights use [`linear`], which packs them once.
///
/// # Errors
/// Extents or layouts that do not fit.
pub fn matmul<D: Device, T: Float, O: ActivationType>(
    a: &Tensor<D, T>,
    b: &Tensor<D, T>,
    args: Matmul,
) -> Result<Tensor<D, O>> {
    let Matmul { transpose_a, transpose_b, compute } = args;
    let op = Op::Matmul { transpose_a, transpose_b, dtype: O::DATA_TYPE, compute };
    same_device(op.name(), a.device(), &[b.device()])?;
    run_one(a.device(), &op, &[a.input(), b.input()])
}
