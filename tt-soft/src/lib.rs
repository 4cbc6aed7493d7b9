//! CPU kernels with TTNN's numerics: what the software device of `tt-ops` runs on.
//!
//! Kernels take an [`Engine`] (thread team, instruction set, scratch memory) and [`View`]s: slices of elements with a
//! shape and strides of four dimensions. They know no tensor names, no model and no policy.
//!
//! * Accumulation, softmax and norm statistics are fp32; a result is rounded once, when it is stored.
//! * Work is split over output rows and columns only, never over the reduced dimension, and the arithmetic of an
//!   element does not depend on the split: results are the same bytes for every thread count.
//! * Kernels read only the logical elements of a view and write every logical element of `out`.
//! * Scratch memory belongs to the engine and only grows: a call whose like has run before allocates nothing.
//!
//! `unsafe` is used inside kernels and the thread team only; the functions above them check their arguments.

pub mod activation;
#[cfg(all(any(test, feature = "amx-emulation"), target_os = "linux", target_arch = "x86_64"))]
#[doc(hidden)]
pub mod amx_emulation;
pub mod attention;
pub mod block_float;
pub mod eltwise;
pub mod engine;
mod error;
pub mod isa;
mod kernels;
pub mod limits;
pub mod matmul;
pub mod memory;
pub mod movement;
pub mod norm;
pub mod pack;
pub mod plan;
mod rows;
pub mod team;
#[cfg(test)]
mod testing;
pub mod tile;
pub mod view;

pub use activation::Activation;
pub use attention::{SdpaConfig, sdpa};
pub use eltwise::{Binary, Fused, Operand, Unary, binary, binary_fused, rotary, softmax, unary};
pub use engine::Engine;
pub use error::{Error, Result};
/// The bfloat16 of elements on the host.
pub use half::bf16;
pub use isa::Isa;
pub use matmul::{Epilogue, Residual, linear, matmul};
pub use memory::AlignedBuf;
pub use movement::{copy, embedding};
pub use norm::{Norm, layer_norm, rms_norm};
pub use pack::{PackedWeight, ReadAt, WeightFormat, WeightOrder};
pub use team::ThreadTeam;
pub use view::{Dtype, Elements, ElementsMut, View, ViewMut};
