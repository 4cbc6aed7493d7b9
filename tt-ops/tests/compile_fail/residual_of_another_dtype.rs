//! A residual has the data type of the result.

use tt_ops::{Bfloat16, Float32, Result, Soft, Tensor, Weight, ops};

fn project(
    x: &Tensor<Soft, Bfloat16>,
    w: &Weight<Soft>,
    residual: &Tensor<Soft, Float32>,
) -> Result<Tensor<Soft, Bfloat16>> {
    ops::linear(x, w, ops::Linear::new().residual(residual))
}

fn main() {}
