//! Where weights come from: a [`TensorSource`] (safetensors files or the procedural generator) read by dotted
//! path through [`Weights`].

mod source;
mod weights;

pub use source::{StoredDtype, TensorInfo, TensorSource};
pub use weights::Weights;
