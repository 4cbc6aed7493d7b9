//! Matmuls, element-wise functions, norms.

use super::Optional;
use crate::bridge::ffi;
use crate::error::Result;
use crate::spec::{ComputeKernelConfig, DataType, MemoryConfig};
use crate::tensor::Tensor;

/// How a matmul is spread over cores (`ttnn::operations::matmul::MatmulProgramConfig`). Extents are in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramConfig {
    /// Rows over y, columns over x; both operands are multicast.
    Multicast(Blocks),
    /// Columns over all cores; the left operand is multicast.
    Multicast1D(Blocks),
}

/// Blocks of a [`ProgramConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Cores in x and y.
    pub grid: (u32, u32),
    /// Tiles of K that are read at a time.
    pub in0_block_w: u32,
    /// Rows and columns of a subblock.
    pub out_subblock: (u32, u32),
    /// Rows of a core.
    pub per_core_m: u32,
    /// Columns of a core.
    pub per_core_n: u32,
}

impl ProgramConfig {
    fn to_ffi(config: Option<Self>) -> ffi::Program {
        let (kind, blocks) = match config {
            None => (0, None),
            Some(Self::Multicast(blocks)) => (1, Some(blocks)),
            Some(Self::Multicast1D(blocks)) => (2, Some(blocks)),
        };
        let none =
            Blocks { grid: (0, 0), in0_block_w: 0, out_subblock: (0, 0), per_core_m: 0, per_core_n: 0 };
        let b = blocks.unwrap_or(none);
        ffi::Program {
            kind,
            grid_x: b.grid.0,
            grid_y: b.grid.1,
            in0_block_w: b.in0_block_w,
            out_subblock_h: b.out_subblock.0,
            out_subblock_w: b.out_subblock.1,
            per_core_m: b.per_core_m,
            per_core_n: b.per_core_n,
        }
    }
}

/// A function of one operand, alone or fused into another operation. `Gelu` is by erf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum UnaryOp {
    /// Gaussian error linear unit.
    Gelu = 1,
    /// `x · sigmoid(x)`.
    Silu = 2,
    /// `max(x, 0)`.
    Relu = 3,
    /// Hyperbolic tangent.
    Tanh = 4,
    /// Logistic function.
    Sigmoid = 5,
    /// Exponential.
    Exp = 6,
    /// Negation.
    Neg = 7,
}

/// A function of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BinaryOp {
    /// `a + b`.
    Add = 0,
    /// `a - b`.
    Subtract = 1,
    /// `a · b`.
    Multiply = 2,
    /// `a / b`.
    Divide = 3,
}

/// Arguments of [`linear`] beside its operands.
#[derive(Debug)]
pub struct Linear<'a> {
    /// A row that is added to each row of the product.
    pub bias: Option<&'a Tensor>,
    /// Applied last; not `Sigmoid`.
    pub activation: Option<UnaryOp>,
    /// Read the left operand transposed.
    pub transpose_a: bool,
    /// Read the right operand transposed.
    pub transpose_b: bool,
    /// Data type of the result.
    pub dtype: DataType,
    /// Placement of the result.
    pub memory_config: MemoryConfig,
    /// Precision.
    pub compute: ComputeKernelConfig,
    /// How it is spread over cores; TTNN chooses where it is not given, and then a bias or an activation may cost an
    /// operation of its own.
    pub program: Option<ProgramConfig>,
}

impl Linear<'_> {
    /// No bias, no activation, HiFi4, in DRAM.
    pub fn new(dtype: DataType) -> Self {
        Self {
            bias: None,
            activation: None,
            transpose_a: false,
            transpose_b: false,
            dtype,
            memory_config: MemoryConfig::DRAM,
            compute: ComputeKernelConfig::HIFI4,
            program: None,
        }
    }
}

/// `activation(x · w + bias)` (`ttnn::linear`).
///
/// # Errors
/// Here and below: whatever TTNN refuses.
pub fn linear(x: &Tensor, w: &Tensor, args: &Linear<'_>) -> Result<Tensor> {
    let optional = Optional::new()?;
    Ok(Tensor::new(ffi::linear(
        x.ffi(),
        w.ffi(),
        optional.or_none(args.bias),
        args.activation.map_or(0, |a| a as u8),
        args.transpose_a,
        args.transpose_b,
        args.dtype as u8,
        args.memory_config.to_ffi(),
        &args.compute.to_ffi(),
        &ProgramConfig::to_ffi(args.program),
    )?))
}

/// Right operand of [`binary`].
#[derive(Debug, Clone, Copy)]
pub enum Rhs<'a> {
    /// A tensor; extents broadcast.
    Tensor(&'a Tensor),
    /// A number.
    Scalar(f32),
}

/// Arguments of [`binary`] beside its operands.
#[derive(Debug, Clone, Copy)]
pub struct Binary {
    /// Applied to the left operand.
    pub lhs_activation: Option<UnaryOp>,
    /// Applied to the right operand.
    pub rhs_activation: Option<UnaryOp>,
    /// Applied to the result.
    pub activation: Option<UnaryOp>,
    /// Data type of the result.
    pub dtype: DataType,
    /// Placement of the result.
    pub memory_config: MemoryConfig,
}

impl Binary {
    /// No activations, in DRAM.
    pub fn new(dtype: DataType) -> Self {
        let memory_config = MemoryConfig::DRAM;
        Self { lhs_activation: None, rhs_activation: None, activation: None, dtype, memory_config }
    }
}

/// `a op b` (`ttnn::add`, `subtract`, `multiply`, `divide`).
pub fn binary(op: BinaryOp, a: &Tensor, b: Rhs<'_>, args: &Binary) -> Result<Tensor> {
    let codes = [args.lhs_activation, args.rhs_activation, args.activation].map(|a| a.map_or(0, |a| a as u8));
    let (dtype, placement) = (args.dtype as u8, args.memory_config.to_ffi());
    let out = match b {
        Rhs::Tensor(b) => ffi::binary(a.ffi(), b.ffi(), op as u8, &codes, dtype, placement),
        Rhs::Scalar(b) => ffi::binary_scalar(a.ffi(), b, op as u8, &codes, dtype, placement),
    };
    Ok(Tensor::new(out?))
}

/// A function of one operand, in its data type (`ttnn::gelu`, `silu`, …), without approximations.
pub fn unary(op: UnaryOp, x: &Tensor, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::unary(x.ffi(), op as u8, memory_config.to_ffi())?))
}

/// Each row normalised, times `weight`, plus `bias` (`ttnn::layer_norm`).
pub fn layer_norm(
    x: &Tensor,
    epsilon: f32,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    memory_config: MemoryConfig,
    compute: ComputeKernelConfig,
) -> Result<Tensor> {
    let optional = Optional::new()?;
    let (weight, bias) = (optional.or_none(weight), optional.or_none(bias));
    let (placement, compute) = (memory_config.to_ffi(), compute.to_ffi());
    Ok(Tensor::new(ffi::layer_norm(x.ffi(), epsilon, weight, bias, placement, &compute)?))
}

/// Each row over its root mean square, times `weight` (`ttnn::rms_norm`).
pub fn rms_norm(
    x: &Tensor,
    epsilon: f32,
    weight: Option<&Tensor>,
    memory_config: MemoryConfig,
    compute: ComputeKernelConfig,
) -> Result<Tensor> {
    let optional = Optional::new()?;
    let (placement, compute) = (memory_config.to_ffi(), compute.to_ffi());
    Ok(Tensor::new(ffi::rms_norm(x.ffi(), epsilon, optional.or_none(weight), placement, &compute)?))
}

/// Softmax of each row, numerically stable (`ttnn::softmax`).
pub fn softmax(x: &Tensor, memory_config: MemoryConfig, compute: ComputeKernelConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::softmax(x.ffi(), memory_config.to_ffi(), &compute.to_ffi())?))
}
