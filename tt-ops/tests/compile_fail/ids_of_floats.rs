//! Token ids are unsigned integers.

use tt_ops::{Bfloat16, Float32, Result, Soft, Tensor, ops};

fn embed(ids: &Tensor<Soft, Float32>, table: &Tensor<Soft, Bfloat16>) -> Result<Tensor<Soft, Bfloat16>> {
    ops::embedding(ids, table)
}

fn main() {}
