//! Actions: from the model's `[horizon, 32]` output to [chunks](ActionChunk) of physical values per key, by slicing,
//! denormalisation and rotation ([`ActionTransform`]).

mod chunk;
mod transform;

pub use chunk::{ActionChunk, ActionGroup};
pub use transform::{ActionOptions, ActionTransform};
