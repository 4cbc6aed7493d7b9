//! Images: decoding, the resolution policy, the eval chain (crop, resize, truncate), normalisation.

mod decode;
mod eval_transform;
mod frame;
mod jpeg;
mod resize;
mod resolution;
mod taps;

pub use eval_transform::{CROP_SCALE, CropBox, EvalTransform, MAX_SIDE, normalize};
pub use frame::Frame;
pub use resolution::{ResolutionPolicy, fit};
