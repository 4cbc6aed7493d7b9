//! This crate's types and attributes as the bridge's.

use tt_sys::{ComputeKernelConfig as SysCompute, DataType as SysType, ops};

use super::placement::placement;
use super::program::TILE;
use crate::compute::{ComputeKernelConfig, MathFidelity};
use crate::dtype::DataType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Activation, BinaryOp, UnaryOp};
use crate::shape::Shape;
use crate::spec::{TensorSpec, WeightSpec};

/// Bytes of a tile in each data type.
pub(super) fn tile_bytes(dtype: DataType) -> usize {
    const ELEMENTS: usize = TILE * TILE;
    dtype.bytes(ELEMENTS)
}

pub(super) fn sys_type(dtype: DataType) -> SysType {
    match dtype {
        DataType::Bfloat16 => SysType::Bfloat16,
        DataType::Float32 => SysType::Float32,
        DataType::Uint32 => SysType::Uint32,
        DataType::Bfloat8B => SysType::Bfloat8B,
        DataType::Bfloat4B => SysType::Bfloat4B,
        DataType::Int32 => SysType::Int32,
    }
}

pub(super) fn sys_layout(layout: Layout) -> tt_sys::Layout {
    match layout {
        Layout::Tile => tt_sys::Layout::Tile,
        Layout::RowMajor => tt_sys::Layout::RowMajor,
    }
}

pub(super) fn dims(shape: Shape) -> [u32; 4] {
    shape.as_rank4().map(|extent| extent as u32)
}

/// `grid` is the device's.
pub(super) fn sys_spec(spec: &TensorSpec, grid: (u32, u32)) -> Result<tt_sys::TensorSpec> {
    Ok(tt_sys::TensorSpec {
        shape: dims(spec.shape).to_vec(),
        dtype: sys_type(spec.dtype),
        layout: sys_layout(spec.layout),
        memory_config: placement("from_span", spec, grid)?,
    })
}

pub(super) fn weight_spec(spec: &WeightSpec) -> tt_sys::TensorSpec {
    tt_sys::TensorSpec::tiles(&[1, 1, spec.k as u32, spec.n as u32], sys_type(spec.dtype))
}

/// Bytes of a weight in whole tiles.
pub(super) fn weight_bytes(spec: &WeightSpec) -> usize {
    spec.k.div_ceil(TILE) * spec.n.div_ceil(TILE) * tile_bytes(spec.dtype)
}

pub(super) fn compute(config: ComputeKernelConfig) -> SysCompute {
    SysCompute {
        math_fidelity: match config.math_fidelity {
            MathFidelity::LoFi => tt_sys::MathFidelity::LoFi,
            MathFidelity::HiFi2 => tt_sys::MathFidelity::HiFi2,
            MathFidelity::HiFi3 => tt_sys::MathFidelity::HiFi3,
            MathFidelity::HiFi4 => tt_sys::MathFidelity::HiFi4,
        },
        math_approx_mode: config.math_approx_mode,
        fp32_dest_acc_en: config.fp32_dest_acc_en,
        packer_l1_acc: config.packer_l1_acc,
    }
}

/// GELU by tanh is GELU by erf on the card: TTNN has no other one that can be fused.
pub(super) fn fused(activation: Activation) -> ops::UnaryOp {
    match activation {
        Activation::GeluTanh | Activation::GeluErf => ops::UnaryOp::Gelu,
        Activation::Silu => ops::UnaryOp::Silu,
        Activation::Relu => ops::UnaryOp::Relu,
    }
}

pub(super) fn unary(op: UnaryOp) -> ops::UnaryOp {
    match op {
        UnaryOp::GeluTanh | UnaryOp::GeluErf => ops::UnaryOp::Gelu,
        UnaryOp::Silu => ops::UnaryOp::Silu,
        UnaryOp::Relu => ops::UnaryOp::Relu,
        UnaryOp::Tanh => ops::UnaryOp::Tanh,
        UnaryOp::Sigmoid => ops::UnaryOp::Sigmoid,
        UnaryOp::Exp => ops::UnaryOp::Exp,
        UnaryOp::Neg => ops::UnaryOp::Neg,
    }
}

pub(super) fn binary(op: BinaryOp) -> ops::BinaryOp {
    match op {
        BinaryOp::Add => ops::BinaryOp::Add,
        BinaryOp::Subtract => ops::BinaryOp::Subtract,
        BinaryOp::Multiply => ops::BinaryOp::Multiply,
        BinaryOp::Divide => ops::BinaryOp::Divide,
    }
}
