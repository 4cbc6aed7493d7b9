//! `ttnn.transformer.scaled_dot_product_attention`, `ttnn.softmax`, `ttnn.experimental.rotary_embedding`.

#![allow(clippy::needless_pass_by_value, reason = "arguments are made for one call")]

use super::{run_one, same_device};
use crate::compute::ComputeKernelConfig;
use crate::device::Device;
use crate::dtype::Activation as ActivationType;
use crate::dtype::Float;
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::program::SdpaProgramConfig;
use crate::tensor::{Tensor, TensorRef};

/// Arguments of [`scaled_dot_product_attention`] beside its operands.
#[derive(Debug)]
pub struct Sdpa<'a, D: Device> {
    attn_mask: Option<TensorRef<'a, D>>,
    is_causal: bool,
    scale: Option<f32>,
    compute: ComputeKernelConfig,
    program_config: Option<SdpaProgramConfig>,
}

impl<D: Device> Default for Sdpa<'_, D> {
    fn default() -> Self {
        Self {
            attn_mask: None,
            is_causal: false,
            scale: None,
            compute: ComputeKernelConfig::default(),
            program_config: None,
        }
    }
}

impl<'a, D: Device> Sdpa<'a, D> {
    /// No mask, not causal (TTNN's default is causal: it must be asked for here), scale `1/sqrt(e)`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Each query sees the keys up to its own position.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.is_causal = true;
        self
    }

    /// Adds `mask [1 | b, 1 | h, sq, sk]` to the scaled scores. A row without any finite score gives zeros.
    #[must_use]
    pub fn attn_mask(mut self, mask: impl Into<TensorRef<'a, D>>) -> Self {
        self.attn_mask = Some(mask.into());
        self
    }

    /// Adds a mask if there is one.
    #[must_use]
    pub fn maybe_attn_mask<T: crate::dtype::Dtype>(mut self, mask: Option<&'a Tensor<D, T>>) -> Self {
        self.attn_mask = mask.map(Into::into);
        self
    }

    /// Multiplies scores by `scale` in place of `1/sqrt(e)`, with `e` the logical head size.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Sets the precision.
    #[must_use]
    pub fn compute(mut self, compute: ComputeKernelConfig) -> Self {
        self.compute = compute;
        self
    }

    /// Spreads the work over cores in this way and no other.
    #[must_use]
    pub fn program_config(mut self, program_config: SdpaProgramConfig) -> Self {
        self.program_config = Some(program_config);
        self
    }
}

/// `softmax(scale · q kᵀ + mask) v` per head: `q [b, h, sq, e]`, `k` and `v` `[b, kv, sk, e]` → `[b, h, sq, e]`
/// (`ttnn.transformer.scaled_dot_product_attention`).
///
/// Head `i` of `q` uses head `i / (h / kv)` of `k` and `v`. Any `e`. The result lies in memory as `[b, sq, h, e]`, so
/// that [`concatenate_heads`](super::concatenate_heads) is a view.
///
/// # Errors
/// Extents, data types or layouts that do not fit; a mask together with `causal`.
pub fn scaled_dot_product_attention<D: Device, T: ActivationType>(
    q: &Tensor<D, T>,
    k: &Tensor<D, T>,
    v: &Tensor<D, T>,
    args: Sdpa<'_, D>,
) -> Result<Tensor<D, T>> {
    let scale = args.scale.unwrap_or_else(|| 1.0 / (q.shape().last() as f32).sqrt());
    let op = Op::ScaledDotProductAttention {
        is_causal: args.is_causal,
        scale,
        attn_mask: args.attn_mask.is_some(),
        compute: args.compute,
        program_config: args.program_config,
    };
    same_device(op.name(), q.device(), &[k.device(), v.device()])?;
    let mut inputs = vec![q.input(), k.input(), v.input()];
    if let Some(mask) = &args.attn_mask {
        same_device(op.name(), q.device(), &[mask.device()])?;
        inputs.push(mask.input());
    }
    run_one(q.device(), &op, &inputs)
}

/// Softmax along the last extent; `dim` must be that one, as -1 or counted (`ttnn.softmax`). A row of `-inf` gives
/// zeros.
///
/// # Errors
/// Another `dim`.
pub fn softmax<D: Device, T: Float, O: ActivationType>(x: &Tensor<D, T>, dim: i32) -> Result<Tensor<D, O>> {
    let op = Op::Softmax { dtype: O::DATA_TYPE };
    if x.shape().axis(dim) != Some(x.shape().rank() - 1) {
        return Err(TtError::argument(op.name(), format!("dim {dim} of {}", x.shape()), "the last"));
    }
    run_one(x.device(), &op, &[x.input()])
}

/// Rotary position embedding by halves: pairs `(j, j + e/2)`, `x · cos + rotate_half(x) · sin`
/// (`ttnn.experimental.rotary_embedding`).
///
/// `x [b, h, s, e]`, `cos` and `sin` `[s, e]` (both halves filled in, leading extents 1), `float32` or `bfloat16`.
///
/// # Errors
/// Extents or layouts that do not fit.
pub fn rotary_embedding<'a, D: Device, T: Float, O: ActivationType>(
    x: &'a Tensor<D, T>,
    cos: impl Into<TensorRef<'a, D>>,
    sin: impl Into<TensorRef<'a, D>>,
) -> Result<Tensor<D, O>> {
    let (cos, sin) = (cos.into(), sin.into());
    let op = Op::RotaryEmbedding { dtype: O::DATA_TYPE };
    same_device(op.name(), x.device(), &[cos.device(), sin.device()])?;
    run_one(x.device(), &op, &[x.input(), cos.input(), sin.input()])
}
