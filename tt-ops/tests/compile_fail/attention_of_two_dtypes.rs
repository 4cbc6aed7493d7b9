//! Queries, keys and values have one data type.

use tt_ops::{Bfloat16, Float32, Result, Soft, Tensor, ops};

fn attend(q: &Tensor<Soft, Bfloat16>, k: &Tensor<Soft, Float32>) -> Result<Tensor<Soft, Bfloat16>> {
    ops::scaled_dot_product_attention(q, k, k, ops::Sdpa::new())
}

fn main() {}
