//! A tensor whose data type is only known at run time is typed before it is computed with.

use tt_ops::{Dynamic, Float32, Result, Soft, Tensor, ops};

fn double(x: &Tensor<Soft, Dynamic>) -> Result<Tensor<Soft, Float32>> {
    ops::add(x, x)
}

fn main() {}
