//! Block formats come from a typecast, not from arithmetic.

use tt_ops::{Bfloat8B, Float32, Result, Soft, Tensor, ops};

fn add(a: &Tensor<Soft, Float32>) -> Result<Tensor<Soft, Bfloat8B>> {
    ops::add(a, 1.0)
}

fn main() {}
