//! Operations that move values.

use crate::bridge::ffi;
use crate::device::Device;
use crate::error::Result;
use crate::spec::{DataType, Layout, MemoryConfig};
use crate::tensor::Tensor;

/// Rows of a row-major `table` by number, in tiles (`ttnn::embedding`).
///
/// # Errors
/// Here and below: whatever TTNN refuses.
pub fn embedding(
    ids: &Tensor,
    table: &Tensor,
    dtype: DataType,
    memory_config: MemoryConfig,
) -> Result<Tensor> {
    Ok(Tensor::new(ffi::embedding(ids.ffi(), table.ffi(), dtype as u8, memory_config.to_ffi())?))
}

/// Tensors side by side along `dim` (`ttnn::concat`).
pub fn concat(device: &Device, tensors: &[&Tensor], dim: i32, memory_config: MemoryConfig) -> Result<Tensor> {
    ffi::concat_begin(device.ffi())?;
    for tensor in tensors {
        ffi::concat_push(device.ffi(), tensor.ffi())?;
    }
    Ok(Tensor::new(ffi::concat_end(device.ffi(), dim, memory_config.to_ffi())?))
}

/// Elements from `begins` to before `ends`, each `step`-th (`ttnn::slice`).
pub fn slice(
    x: &Tensor,
    begins: &[u32],
    ends: &[u32],
    step: &[u32],
    memory_config: MemoryConfig,
) -> Result<Tensor> {
    Ok(Tensor::new(ffi::slice(x.ffi(), begins, ends, step, memory_config.to_ffi())?))
}

/// `after[dim]` elements of `value` added at the end of each dim (`ttnn::pad`).
pub fn pad(x: &Tensor, after: &[u32], value: f32, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::pad(x.ffi(), after, value, memory_config.to_ffi())?))
}

/// The same elements under another shape; a view where TTNN can (`ttnn::reshape`).
pub fn reshape(x: &Tensor, shape: &[u32], memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::reshape(x.ffi(), shape, memory_config.to_ffi())?))
}

/// Dim `i` of the result is dim `dims[i]` of `x` (`ttnn::permute`).
pub fn permute(x: &Tensor, dims: &[u32], memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::permute(x.ffi(), dims, memory_config.to_ffi())?))
}

/// The same values in another data type (`ttnn::typecast`).
pub fn typecast(x: &Tensor, dtype: DataType, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::typecast(x.ffi(), dtype as u8, memory_config.to_ffi())?))
}

/// The same values in another layout (`ttnn::to_layout`).
pub fn to_layout(x: &Tensor, layout: Layout, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::to_layout(x.ffi(), layout as u8, memory_config.to_ffi())?))
}

/// The same values placed elsewhere, in another data type where that is asked for; between shards and interleaved, or within
/// either (`ttnn::to_memory_config`).
pub fn to_memory_config(x: &Tensor, dtype: DataType, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::to_memory_config(x.ffi(), dtype as u8, memory_config.to_ffi())?))
}

/// A copy in memory of its own (`ttnn::clone`).
pub fn clone(x: &Tensor, memory_config: MemoryConfig) -> Result<Tensor> {
    Ok(Tensor::new(ffi::clone_tensor(x.ffi(), memory_config.to_ffi())?))
}
