//! `ttnn.transformer.split_query_key_value_and_split_heads`, `ttnn.transformer.concatenate_heads`.

use super::{permute, reshape, run, run_one, same_device};
use crate::device::Device;
use crate::dtype::Float;
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::tensor::Tensor;

/// How many heads there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Query heads.
    pub num_heads: usize,
    /// Key and value heads.
    pub num_kv_heads: usize,
    /// Whether `k` comes out as `[b, kv, e, s]`.
    pub transpose_key: bool,
}

impl Heads {
    /// As many key and value heads as query heads.
    pub fn new(num_heads: usize) -> Self {
        Self { num_heads, num_kv_heads: num_heads, transpose_key: false }
    }

    /// Grouped-query attention.
    #[must_use]
    pub fn kv_heads(mut self, num_kv_heads: usize) -> Self {
        self.num_kv_heads = num_kv_heads;
        self
    }
}

/// Splits a fused projection `[q heads | k heads | v heads]` into `q [b, h, s, e]`, `k` and `v` `[b, kv, s, e]`
/// (`ttnn.transformer.split_query_key_value_and_split_heads`, `ttnn.experimental.nlp_create_qkv_heads`).
///
/// `qkv [b, s, (h + 2 kv) e]`; with `kv [b, s', 2 kv e]` the first operand is `q [b, s, h e]` alone, for
/// cross-attention. Views on the software device.
///
/// # Errors
/// Extents that are not whole heads.
#[allow(clippy::type_complexity)]
pub fn split_query_key_value_and_split_heads<D: Device, T: Float>(
    qkv: &Tensor<D, T>,
    kv: Option<&Tensor<D, T>>,
    heads: Heads,
) -> Result<(Tensor<D, T>, Tensor<D, T>, Tensor<D, T>)> {
    let Heads { num_heads, num_kv_heads, transpose_key } = heads;
    let op = Op::SplitQueryKeyValueAndSplitHeads { kv: kv.is_some(), num_heads, num_kv_heads, transpose_key };
    let mut inputs = vec![qkv.input()];
    if let Some(kv) = kv {
        same_device(op.name(), qkv.device(), &[kv.device()])?;
        inputs.push(kv.input());
    }
    let device = qkv.device();
    let mut tensors =
        run(device, &op, &inputs)?.into_iter().map(|(b, spec)| Tensor::from_parts(device.clone(), b, spec));
    match (tensors.next(), tensors.next(), tensors.next()) {
        (Some(q), Some(k), Some(v)) => Ok((q, k, v)),
        _ => Err(TtError::argument(op.name(), "fewer results", "three")),
    }
}

/// `x [b, s, h e]` → `[b, h, s, e]`: a reshape and a permute. A view on the software device.
///
/// # Errors
/// A last extent that `num_heads` does not divide, or another rank.
pub fn split_heads<D: Device, T: Float>(x: &Tensor<D, T>, num_heads: usize) -> Result<Tensor<D, T>> {
    const OP: &str = "split_heads";
    let [b, s, width] = *x.shape().dims() else {
        return Err(TtError::shape(OP, x.shape().to_string(), "[b, s, h e]"));
    };
    if num_heads == 0 || !width.is_multiple_of(num_heads) {
        return Err(TtError::shape(OP, x.shape().to_string(), format!("[b, s, {num_heads} e]")));
    }
    permute(&reshape(x, [b, s, num_heads, width / num_heads])?, &[0, 2, 1, 3])
}

/// `x [b, h, s, e]` → `[b, s, h e]` (`ttnn.transformer.concatenate_heads`). A view on the software device for what
/// [`scaled_dot_product_attention`](super::scaled_dot_product_attention) gives.
///
/// # Errors
/// Another rank.
pub fn concatenate_heads<D: Device, T: Float>(x: &Tensor<D, T>) -> Result<Tensor<D, T>> {
    run_one(x.device(), &Op::ConcatenateHeads, &[x.input()])
}
