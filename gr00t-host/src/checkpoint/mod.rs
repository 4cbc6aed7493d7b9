//! Where weights come from: a [`TensorSource`] (safetensors files or the procedural generator) read by dotted
//! path through [`Weights`].

mod plan;
pub mod procedural;
mod safetensors;
mod source;
mod weights;

pub use plan::{ExpectedTensor, Part, expected_tensors};
pub use procedural::Procedural;
pub use safetensors::SafetensorsFile;
pub use source::{StoredDtype, TensorInfo, TensorSource};
pub use weights::Weights;
