//! State: from a robot's values to the padded vector that the model reads ([`StateTransform`]), by [rotation](convert_rotation) and
//! [normalisation](normalize).

mod asin_f32;
mod atan2f;
mod key;
pub mod normalize;
mod outlier;
mod real;
mod rotation;
mod sin_f32;
mod sin_f64;
mod transform;

pub use key::KeyTransform;
pub(crate) use key::Side;
pub use real::Real;
pub use rotation::convert as convert_rotation;
pub use transform::{StateTransform, StateVector, UnknownKeys};
