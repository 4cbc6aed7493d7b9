//! Operands live on one kind of device.

use tt_ops::{Float32, Metal, Result, Soft, Tensor, ops};

fn add(a: &Tensor<Soft, Float32>, b: &Tensor<Metal, Float32>) -> Result<Tensor<Soft, Float32>> {
    ops::add(a, b)
}

fn main() {}
