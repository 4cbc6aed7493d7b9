//! TTNN's operations. Every argument that TTNN would choose by itself, with consequences for precision or speed, is
//! explicit here: a matmul without a compute config sums in bfloat16, and one with a program config falls to LoFi.

mod attention;
mod compute;
mod movement;

pub use attention::{
    Attention, concat_heads, create_heads, rotary_embedding_hf, scaled_dot_product_attention,
};
pub use compute::{
    Binary, BinaryOp, Blocks, Linear, ProgramConfig, Rhs, UnaryOp, binary, layer_norm, linear, rms_norm,
    softmax, unary,
};
pub use movement::{
    clone, concat, embedding, pad, permute, reshape, slice, to_layout, to_memory_config, typecast,
};

use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::error::Result;
use crate::tensor::Tensor;

/// A handle for an argument that may be left out.
struct Optional {
    none: UniquePtr<ffi::Tensor>,
}

impl Optional {
    fn new() -> Result<Self> {
        Ok(Self { none: ffi::no_tensor()? })
    }

    fn or_none<'a>(&'a self, tensor: Option<&'a Tensor>) -> &'a ffi::Tensor {
        tensor.map_or(&self.none, Tensor::ffi)
    }
}
