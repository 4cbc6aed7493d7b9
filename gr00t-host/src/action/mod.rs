//! Actions: slicing, denormalisation, rotation.

mod chunk;

pub use chunk::{ActionChunk, ActionGroup};
