//! Attention, heads, rotation.

use super::Optional;
use crate::bridge::ffi;
use crate::error::Result;
use crate::spec::{ComputeKernelConfig, MemoryConfig};
use crate::tensor::Tensor;

/// Arguments of [`scaled_dot_product_attention`] beside its operands.
#[derive(Debug)]
pub struct Attention<'a> {
    /// Added to the scores, `[b | 1, h | 1, sq, sk]` in DRAM.
    pub mask: Option<&'a Tensor>,
    /// Whether a query only sees keys up to its own position.
    pub is_causal: bool,
    /// Multiplies the scores; TTNN's default would take the padded head size.
    pub scale: f32,
    /// Queries of one piece of work, a multiple of 32.
    pub q_chunk_size: u32,
    /// Keys that are attended to at a time, a multiple of 32.
    pub k_chunk_size: u32,
    /// Cores in x and y.
    pub grid: (u32, u32),
    /// Placement of the result.
    pub memory_config: MemoryConfig,
    /// Precision.
    pub compute: ComputeKernelConfig,
}

/// `softmax(q kᵀ · scale + mask) v` of `[b, h, s, e]`, `e` a multiple of 32 (`ttnn::transformer::…`).
///
/// # Errors
/// Here and below: whatever TTNN refuses.
pub fn scaled_dot_product_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    args: &Attention<'_>,
) -> Result<Tensor> {
    let optional = Optional::new()?;
    Ok(Tensor::new(ffi::attention(
        q.ffi(),
        k.ffi(),
        v.ffi(),
        optional.or_none(args.mask),
        args.is_causal,
        args.scale,
        args.q_chunk_size,
        args.k_chunk_size,
        args.grid.0,
        args.grid.1,
        args.memory_config.to_ffi(),
        &args.compute.to_ffi(),
    )?))
}

/// Rotation of `[b, h, s, e]` by halves, `e` a multiple of 64 (`ttnn::experimental::rotary_embedding_hf`, prefill).
pub fn rotary_embedding_hf(
    x: &Tensor,
    cos: &Tensor,
    sin: &Tensor,
    memory_config: MemoryConfig,
    compute: ComputeKernelConfig,
) -> Result<Tensor> {
    let (placement, compute) = (memory_config.to_ffi(), compute.to_ffi());
    Ok(Tensor::new(ffi::rotary_embedding(x.ffi(), cos.ffi(), sin.ffi(), placement, &compute)?))
}

/// `[b, 1, s, (h + 2 kv) e]`, or queries and `kv` apart, to queries, keys and values `[b, h, s, e]`
/// (`ttnn::experimental::nlp_create_qkv_heads`).
pub fn create_heads(
    qkv: &Tensor,
    kv: Option<&Tensor>,
    num_heads: u32,
    num_kv_heads: u32,
    transpose_key: bool,
    memory_config: MemoryConfig,
) -> Result<[Tensor; 3]> {
    let optional = Optional::new()?;
    let (mut q, mut k, mut v) = (ffi::no_tensor()?, ffi::no_tensor()?, ffi::no_tensor()?);
    ffi::create_heads(
        qkv.ffi(),
        optional.or_none(kv),
        num_heads,
        num_kv_heads,
        transpose_key,
        memory_config.to_ffi(),
        q.pin_mut(),
        k.pin_mut(),
        v.pin_mut(),
    )?;
    Ok([q, k, v].map(Tensor::new))
}

/// `[b, h, s, e]` to `[b, 1, s, h e]` (`ttnn::experimental::nlp_concat_heads`).
pub fn concat_heads(x: &Tensor, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::concat_heads(x.ffi(), memory_config.to_ffi())?))
}
