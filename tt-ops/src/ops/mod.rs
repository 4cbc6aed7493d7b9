//! The ops, as plain functions under TTNN's names. Each one checks its operands, says what comes out, and hands one
//! [`Op`] to the device, which runs it, or records it while a trace is being captured.
//!
//! The data type of a result is a type parameter where TTNN has `dtype=`: it follows from the context or is written
//! `ops::add::<_, _, Float32>(…)`. Fusions are written down by the caller (bias, activation and residual of
//! [`linear`], activations of [`multiply_with`]) and never made behind its back, so that eager calls, observers and
//! replays give the same bytes.

mod attention;
mod eltwise;
mod embedding;
mod heads;
mod matmul;
mod movement;
mod norm;

pub use attention::{Sdpa, rotary_embedding, scaled_dot_product_attention, softmax};
pub use eltwise::{
    Binary, Gelu, Rhs, add, binary, divide, exp, gelu, multiply, multiply_with, neg, relu, sigmoid, silu,
    subtract, swiglu, tanh, unary,
};
pub use embedding::embedding;
pub use heads::{Heads, concatenate_heads, split_heads, split_query_key_value_and_split_heads};
pub use matmul::{Linear, Matmul, linear, matmul};
pub use movement::{
    clone, concat, permute, reshape, slice, slice_dim, to_layout, to_memory_config, transpose, typecast,
};
pub use norm::{LayerNorm, RmsNorm, layer_norm, rms_norm};

use crate::device::{Device, Input};
use crate::dtype::Dtype;
use crate::error::{Result, TtError};
use crate::op::{InputSpec, Op};
use crate::tensor::Tensor;

/// Checks, then dispatches.
fn run<D: Device>(
    device: &D,
    op: &Op,
    inputs: &[Input<'_, D>],
) -> Result<Vec<(D::Buffer, crate::TensorSpec)>> {
    let specs: Vec<InputSpec> = inputs
        .iter()
        .map(|input| match input {
            Input::Tensor { spec, .. } => InputSpec::Tensor(**spec),
            Input::Weight { spec, .. } => InputSpec::Weight(**spec),
        })
        .collect();
    let outputs = op.infer(&specs)?;
    let buffers = device.dispatch(op, inputs, &outputs)?;
    Ok(buffers.into_iter().zip(outputs).collect())
}

/// [`run`] for ops with one result. The caller has put `T`'s data type into `op`.
fn run_one<D: Device, T: Dtype>(device: &D, op: &Op, inputs: &[Input<'_, D>]) -> Result<Tensor<D, T>> {
    match run(device, op, inputs)?.into_iter().next() {
        Some((buffer, spec)) => Ok(Tensor::from_parts(device.clone(), buffer, spec)),
        None => Err(TtError::argument(op.name(), "no result", "one")),
    }
}

/// Refuses operands of different devices.
fn same_device<D: Device>(op: &'static str, first: &D, others: &[&D]) -> Result<()> {
    if others.iter().all(|other| first.same(other)) { Ok(()) } else { Err(TtError::Devices { op }) }
}
