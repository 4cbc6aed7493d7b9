//! Actions: slicing, denormalisation, rotation.

mod chunk;
mod transform;

pub use chunk::{ActionChunk, ActionGroup};
pub use transform::{ActionOptions, ActionTransform};
