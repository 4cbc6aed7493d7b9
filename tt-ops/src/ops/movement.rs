//! Ops that only move values: `ttnn.concat`, `ttnn.slice`, `ttnn.reshape`, `ttnn.permute`, `ttnn.typecast`,
//! `ttnn.to_layout`, `ttnn.clone`. On the software device reshape, permute and slice are views wherever strides can
//! say it.

use super::{run_one, same_device};
use crate::device::Device;
use crate::dtype::{Dtype, Static};
use crate::error::{Result, TtError};
use crate::layout::{Layout, MemoryConfig};
use crate::op::Op;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Joins tensors along `dim`; negative counts from the back (`ttnn.concat`).
///
/// # Errors
/// No tensors; extents that differ elsewhere; different data types or layouts.
pub fn concat<D: Device, T: Dtype>(tensors: &[&Tensor<D, T>], dim: i32) -> Result<Tensor<D, T>> {
    const OP: &str = "concat";
    let Some(first) = tensors.first() else {
        return Err(TtError::argument(OP, "no tensors", "at least one"));
    };
    let axis = first.shape().axis(dim).ok_or_else(|| {
        TtError::argument(OP, format!("dim {dim} of {}", first.shape()), "a dim that exists")
    })?;
    let devices: Vec<&D> = tensors.iter().map(|t| t.device()).collect();
    same_device(OP, first.device(), &devices)?;
    let inputs: Vec<_> = tensors.iter().map(|t| t.input()).collect();
    run_one(first.device(), &Op::Concat { dim: axis }, &inputs)
}

/// The elements from `begins` up to but not including `ends`, each `step`-th, per dim (`ttnn.slice`).
///
/// # Errors
/// Bounds outside the tensor, empty ranges, a step of 0.
pub fn slice<D: Device, T: Dtype>(
    x: &Tensor<D, T>,
    begins: &[usize],
    ends: &[usize],
    step: &[usize],
) -> Result<Tensor<D, T>> {
    let op = Op::Slice { begins: begins.to_vec(), ends: ends.to_vec(), step: step.to_vec() };
    run_one(x.device(), &op, &[x.input()])
}

/// The elements `range` of one dim, all of the others: [`slice`](fn@slice) for the usual case.
///
/// # Errors
/// A dim that does not exist, a range outside it or empty.
pub fn slice_dim<D: Device, T: Dtype>(
    x: &Tensor<D, T>,
    dim: i32,
    range: std::ops::Range<usize>,
) -> Result<Tensor<D, T>> {
    let shape = x.shape();
    let axis = shape
        .axis(dim)
        .ok_or_else(|| TtError::argument("slice", format!("dim {dim} of {shape}"), "a dim that exists"))?;
    let mut begins = vec![0; shape.rank()];
    let mut ends = shape.dims().to_vec();
    begins[axis] = range.start;
    ends[axis] = range.end;
    slice(x, &begins, &ends, &vec![1; shape.rank()])
}

/// The same elements in row-major order under another shape (`ttnn.reshape`).
///
/// # Errors
/// Another number of elements.
pub fn reshape<D: Device, T: Dtype>(x: &Tensor<D, T>, shape: impl Into<Shape>) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::Reshape { shape: shape.into() }, &[x.input()])
}

/// Reorders dims: dim `i` of the result is dim `dims[i]` of `x` (`ttnn.permute`).
///
/// # Errors
/// `dims` that do not name each dim once.
pub fn permute<D: Device, T: Dtype>(x: &Tensor<D, T>, dims: &[usize]) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::Permute { dims: dims.to_vec() }, &[x.input()])
}

/// Swaps two dims; negative counts from the back (`ttnn.transpose`).
///
/// # Errors
/// Dims that do not exist.
pub fn transpose<D: Device, T: Dtype>(x: &Tensor<D, T>, dim1: i32, dim2: i32) -> Result<Tensor<D, T>> {
    let shape = x.shape();
    let (Some(a), Some(b)) = (shape.axis(dim1), shape.axis(dim2)) else {
        return Err(TtError::argument(
            "transpose",
            format!("dims {dim1}, {dim2} of {shape}"),
            "dims that exist",
        ));
    };
    let mut dims: Vec<usize> = (0..shape.rank()).collect();
    dims.swap(a, b);
    permute(x, &dims)
}

/// The same values in another data type (`ttnn.typecast`). Floats are rounded to nearest even, block formats per 16
/// values of a row; the same type gives the same tensor.
///
/// # Errors
/// Floats to or from `uint32` (go through `int32`).
pub fn typecast<D: Device, T: Dtype, O: Static>(x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
    run_one(x.device(), &Op::Typecast { dtype: O::DATA_TYPE }, &[x.input()])
}

/// The same values in another layout (`ttnn.to_layout`).
///
/// # Errors
/// None beside the device's own.
pub fn to_layout<D: Device, T: Dtype>(x: &Tensor<D, T>, layout: Layout) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::ToLayout { layout }, &[x.input()])
}

/// The same values placed elsewhere (`ttnn.to_memory_config`).
///
/// # Errors
/// None beside the device's own.
pub fn to_memory_config<D: Device, T: Dtype>(
    x: &Tensor<D, T>,
    memory_config: MemoryConfig,
) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::ToMemoryConfig { memory_config }, &[x.input()])
}

/// A copy in memory of its own (`ttnn.clone`); [`Tensor::clone`](Clone::clone) is a second handle to the same memory.
///
/// # Errors
/// None beside the device's own.
pub fn clone<D: Device, T: Dtype>(x: &Tensor<D, T>) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::Clone { dtype: x.dtype() }, &[x.input()])
}
