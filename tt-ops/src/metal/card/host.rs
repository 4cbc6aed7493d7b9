//! Values on their way between the host and the card's thread.

use half::bf16;

use crate::dtype::{HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::spec::{WeightOrder, WeightSpec};

/// Host values that can be sent to another thread. Floats are `f32`, as tt-metal rounds them.
#[derive(Debug)]
pub(super) enum HostValues {
    Floats(Vec<f32>),
    Uints(Vec<u32>),
    Ints(Vec<i32>),
}

impl From<HostSlice<'_>> for HostValues {
    fn from(slice: HostSlice<'_>) -> Self {
        match slice {
            HostSlice::F32(v) => Self::Floats(v.to_vec()),
            HostSlice::Bf16(v) => Self::Floats(v.iter().map(|x| x.to_f32()).collect()),
            HostSlice::U32(v) => Self::Uints(v.to_vec()),
            HostSlice::I32(v) => Self::Ints(v.to_vec()),
        }
    }
}

impl HostValues {
    /// Hands values to a reader of the same kind.
    pub(super) fn copy_to(&self, out: HostSliceMut<'_>) -> Result<()> {
        match (self, out) {
            (Self::Floats(v), HostSliceMut::F32(out)) => out.copy_from_slice(v),
            (Self::Floats(v), HostSliceMut::Bf16(out)) => {
                for (out, &value) in out.iter_mut().zip(v) {
                    *out = bf16::from_f32(value);
                }
            }
            (Self::Uints(v), HostSliceMut::U32(out)) => out.copy_from_slice(v),
            (Self::Ints(v), HostSliceMut::I32(out)) => out.copy_from_slice(v),
            _ => return Err(TtError::dtype("to_vector", "values of another kind", "the tensor's own kind")),
        }
        Ok(())
    }
}

/// The parts of a weight side by side as one row-major `[k, n]`.
pub(super) fn matrix(spec: &WeightSpec, parts: &[HostSlice<'_>]) -> Vec<f32> {
    let mut out = vec![0.0; spec.k * spec.n];
    let mut start = 0;
    for part in parts {
        let columns = part.len() / spec.k.max(1);
        match part {
            HostSlice::F32(v) => place(spec, v, |x| x, &mut out, start, columns),
            HostSlice::Bf16(v) => place(spec, v, bf16::to_f32, &mut out, start, columns),
            // Refused before: weights are floats.
            HostSlice::U32(_) | HostSlice::I32(_) => {}
        }
        start += columns;
    }
    out
}

fn place<T: Copy>(
    spec: &WeightSpec,
    values: &[T],
    float: impl Fn(T) -> f32,
    out: &mut [f32],
    start: usize,
    columns: usize,
) {
    /// Rows of `[out, in]` that are turned at a time, so that both sides stay in cache lines.
    const BLOCK: usize = 16;
    match spec.order {
        WeightOrder::InOut => {
            for (row, values) in out.chunks_exact_mut(spec.n).zip(values.chunks_exact(columns)) {
                for (out, &value) in row[start..].iter_mut().zip(values) {
                    *out = float(value);
                }
            }
        }
        WeightOrder::OutIn => {
            for first in (0..columns).step_by(BLOCK) {
                let last = (first + BLOCK).min(columns);
                for (k, row) in out.chunks_exact_mut(spec.n).enumerate() {
                    for column in first..last {
                        row[start + column] = float(values[column * spec.k + k]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DataType;

    #[test]
    fn parts_of_both_orders_lie_side_by_side() {
        let spec = |order| WeightSpec { k: 2, n: 3, dtype: DataType::Bfloat16, order };
        let wanted = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let parts = [HostSlice::F32(&[1.0, 2.0, 4.0, 5.0]), HostSlice::F32(&[3.0, 6.0])];
        assert_eq!(matrix(&spec(WeightOrder::InOut), &parts), wanted);
        let parts = [HostSlice::F32(&[1.0, 4.0, 2.0, 5.0]), HostSlice::F32(&[3.0, 6.0])];
        assert_eq!(matrix(&spec(WeightOrder::OutIn), &parts), wanted);
    }
}
