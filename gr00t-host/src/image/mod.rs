//! Images: decoding, the eval chain (crop, resize, truncate), normalisation.

mod frame;

pub use frame::Frame;
