//! The mask that hides padding from attention without a causal order.

use tt_ops::{Bfloat16, Device, Tensor, ops};

use crate::error::Result;
use crate::weights::Activations;

/// Added to the scores of hidden keys: far below any score, so that their softmax is exactly 0, and finite, as the
/// card wants it.
const HIDDEN: f32 = -1e9;

/// Which positions of each sequence are padding: 0 or [`HIDDEN`] per key.
#[derive(Debug)]
pub(crate) struct PaddingMask<D: Device> {
    /// `[batch, 1, 1, sequence]`.
    keys: Activations<D>,
}

/// A column of zeros `[1, 1, queries, 1]`, which spreads the keys' mask over all queries.
#[derive(Debug)]
pub(crate) struct Queries<D: Device>(Activations<D>);

impl<D: Device> Queries<D> {
    /// For `queries` queries.
    pub(crate) fn new(device: &D, queries: usize) -> Result<Self> {
        Ok(Self(Tensor::<D, Bfloat16>::zeros(device, [1, 1, queries, 1])?))
    }
}

impl<D: Device> PaddingMask<D> {
    /// Nothing hidden yet.
    pub(crate) fn new(device: &D, batch: usize, sequence: usize) -> Result<Self> {
        Ok(Self { keys: Tensor::zeros(device, [batch, 1, 1, sequence])? })
    }

    /// Hides what lies past each row's length.
    pub(crate) fn write(&self, lengths: &[usize]) -> Result<()> {
        let sequence = self.keys.shape().last();
        let row = |&length: &usize| (0..sequence).map(move |at| if at < length { 0.0 } else { HIDDEN });
        Ok(self.keys.write(&lengths.iter().flat_map(row).collect::<Vec<f32>>())?)
    }

    /// The mask `[batch, 1, queries, sequence]` of an attention.
    pub(crate) fn forward(&self, queries: &Queries<D>) -> Result<Activations<D>> {
        Ok(ops::add(&queries.0, &self.keys)?)
    }
}
