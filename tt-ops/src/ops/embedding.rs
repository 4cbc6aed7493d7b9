//! `ttnn.embedding`.

use super::{run_one, same_device};
use crate::device::Device;
use crate::dtype::{Activation as ActivationType, Float, Uint32};
use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;

/// Rows of `weight [vocabulary, n]` by `ids [b, s]` or `[s]` → `[b, s, n]` or `[s, n]` (`ttnn.embedding`). Both
/// row-major; the result is in tiles.
///
/// The software device refuses an id past the vocabulary.
///
/// # Errors
/// Extents, data types or layouts that do not fit.
pub fn embedding<D: Device, T: Float, O: ActivationType>(
    ids: &Tensor<D, Uint32>,
    weight: &Tensor<D, T>,
) -> Result<Tensor<D, O>> {
    let op = Op::Embedding { dtype: O::DATA_TYPE };
    same_device(op.name(), ids.device(), &[weight.device()])?;
    run_one(ids.device(), &op, &[ids.input(), weight.input()])
}
