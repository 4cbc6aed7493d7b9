//! From a checkpoint's dotted paths to weights on a device: the loader that model code walks, the layers that
//! models are built of, and the account of what was put on the device.

mod linear;
mod loader;
mod norm;
mod report;

pub(crate) use linear::Linear;
pub(crate) use loader::Loader;
pub(crate) use norm::{Affine, LayerNorm, RmsNorm};
pub(crate) use report::{Ledger, Progress};
pub use report::{StructureReport, WeightClass, WeightRole};

use tt_ops::{Bfloat16, Float32, Tensor};

/// What passes from op to op.
pub(crate) type Activations<D> = Tensor<D, Bfloat16>;
/// A residual stream, the flow's state, and what is read from or written by the host.
pub(crate) type Precise<D> = Tensor<D, Float32>;
