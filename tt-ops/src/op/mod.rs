//! The list of ops: one value of [`Op`] describes one call, with all its attributes, under TTNN's names.
//!
//! Eager dispatch, recording, export and timing all work on this one list. [`Op::infer`] checks operands and says
//! what comes out; [`Op::flops`] says what it costs.
//!
//! To add an op: a variant of [`Op`] with TTNN's name and arguments; its checks and result in `infer`; its cost in `cost`; a
//! function in [`ops`](crate::ops); what it becomes on the software device in `soft/lower_calls.rs`; cases in
//! [`suite`](crate::suite). The compiler names every place that is left out but the last.

mod attributes;
mod cost;
mod infer;
mod infer_heads;
mod infer_movement;

pub use attributes::{Activation, BinaryOp, UnaryOp};
pub use infer::{InputSpec, OutputSpecs};

use serde::Serialize;

use crate::compute::ComputeKernelConfig;
use crate::dtype::DataType;
use crate::layout::{CoreGrid, Layout, MemoryConfig};
use crate::program::{MatmulProgramConfig, SdpaProgramConfig};
use crate::shape::Shape;

/// One call of an op with all its attributes. Operands come separately, in the order that each variant states.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs)] // fields are TTNN's arguments; the functions in `ops` document them
pub enum Op {
    /// `x [.., m, k]`, weight `[k, n]`, then `bias [n]` and `residual [.., m, n]` where present.
    Linear {
        bias: bool,
        activation: Option<Activation>,
        residual: bool,
        dtype: DataType,
        memory_config: MemoryConfig,
        compute: ComputeKernelConfig,
        #[serde(skip_serializing_if = "Option::is_none")]
        program_config: Option<MatmulProgramConfig>,
        #[serde(skip_serializing_if = "Option::is_none")]
        core_grid: Option<CoreGrid>,
    },
    /// `a [.., m, k]`, `b [.., k, n]`.
    Matmul { transpose_a: bool, transpose_b: bool, dtype: DataType, compute: ComputeKernelConfig },
    /// `a`, and `b` unless there is a `scalar`; extents broadcast.
    Binary {
        #[serde(rename = "binary")]
        op: BinaryOp,
        scalar: Option<f32>,
        lhs_activation: Option<Activation>,
        rhs_activation: Option<Activation>,
        activation: Option<Activation>,
        dtype: DataType,
    },
    /// `x`.
    Unary {
        #[serde(rename = "unary")]
        op: UnaryOp,
        dtype: DataType,
    },
    /// `x [.., 2n]`: first half times silu of the second.
    Swiglu { dtype: DataType },
    /// `x [.., n]`, then `weight [n]`, `bias [n]` where present.
    LayerNorm {
        epsilon: f32,
        weight: bool,
        bias: bool,
        dtype: DataType,
        memory_config: MemoryConfig,
        compute: ComputeKernelConfig,
    },
    /// `x [.., n]`, then `weight [n]` where present.
    RmsNorm {
        epsilon: f32,
        weight: bool,
        dtype: DataType,
        memory_config: MemoryConfig,
        compute: ComputeKernelConfig,
    },
    /// `x`, along its last extent.
    Softmax { dtype: DataType },
    /// `q [b, h, sq, e]`, `k` and `v` `[b, kv, sk, e]`, then `attn_mask [b | 1, h | 1, sq, sk]` where present.
    ScaledDotProductAttention {
        is_causal: bool,
        scale: f32,
        attn_mask: bool,
        compute: ComputeKernelConfig,
        #[serde(skip_serializing_if = "Option::is_none")]
        program_config: Option<SdpaProgramConfig>,
    },
    /// `x [b, h, s, e]`, `cos` and `sin` `[.., s, e]`: half-split pairs (j, j + e/2).
    RotaryEmbedding { dtype: DataType },
    /// `ids [b, s]`, `weight [vocabulary, n]`.
    Embedding { dtype: DataType },
    /// Any number of tensors.
    Concat { dim: usize },
    /// `x`.
    Slice { begins: Vec<usize>, ends: Vec<usize>, step: Vec<usize> },
    /// `x`.
    Reshape { shape: Shape },
    /// `x`.
    Permute { dims: Vec<usize> },
    /// `qkv [b, s, (h + 2 kv) e]`, or `q [b, s, h e]` and `kv [b, s', 2 kv e]`.
    SplitQueryKeyValueAndSplitHeads { kv: bool, num_heads: usize, num_kv_heads: usize, transpose_key: bool },
    /// `x [b, h, s, e]`.
    ConcatenateHeads,
    /// `x`.
    Typecast { dtype: DataType },
    /// `x`.
    ToLayout { layout: Layout },
    /// `x`.
    ToMemoryConfig { memory_config: MemoryConfig },
    /// `x`.
    Clone { dtype: DataType },
}

impl Op {
    /// TTNN's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Matmul { .. } => "matmul",
            Self::Binary { op, .. } => op.name(),
            Self::Unary { op, .. } => op.name(),
            Self::Swiglu { .. } => "swiglu",
            Self::LayerNorm { .. } => "layer_norm",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Softmax { .. } => "softmax",
            Self::ScaledDotProductAttention { .. } => "scaled_dot_product_attention",
            Self::RotaryEmbedding { .. } => "rotary_embedding",
            Self::Embedding { .. } => "embedding",
            Self::Concat { .. } => "concat",
            Self::Slice { .. } => "slice",
            Self::Reshape { .. } => "reshape",
            Self::Permute { .. } => "permute",
            Self::SplitQueryKeyValueAndSplitHeads { .. } => "split_query_key_value_and_split_heads",
            Self::ConcatenateHeads => "concatenate_heads",
            Self::Typecast { .. } => "typecast",
            Self::ToLayout { .. } => "to_layout",
            Self::ToMemoryConfig { .. } => "to_memory_config",
            Self::Clone { .. } => "clone",
        }
    }
}
