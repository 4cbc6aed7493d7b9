//! Operands of an element-wise op have one data type.

use tt_ops::{Bfloat16, Float32, Result, Soft, Tensor, ops};

fn add(a: &Tensor<Soft, Float32>, b: &Tensor<Soft, Bfloat16>) -> Result<Tensor<Soft, Float32>> {
    ops::add(a, b)
}

fn main() {}
