//! Operands of planned kernels: a place in some buffer, with a shape and strides. Reshape, slice and permute only
//! change those.

use crate::plan::heap::HeapId;
use crate::view::{Dtype, Geometry};

/// A row starts at a multiple of this many elements from the first: a tile's width.
pub const ROW_ALIGNMENT: usize = 32;

/// Rows behind the last, which belong to no tensor: what reads past the end finds them.
pub const GUARD_ROWS: usize = 1;

/// Which buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BufferId {
    /// One of the heap's.
    Heap(HeapId),
    /// The n-th that a recording made; placed when the plan is built.
    Recorded(u32),
    /// Part of the arena, in bytes.
    Arena {
        /// First byte.
        start: usize,
        /// Length.
        len: usize,
    },
}

/// Where a kernel reads or writes: elements `offset + Σ index · stride` of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The buffer.
    pub buffer: BufferId,
    /// Type of its elements.
    pub dtype: Dtype,
    /// First element.
    pub offset: usize,
    /// Extents, ones in front.
    pub shape: [usize; 4],
    /// Distance in elements from one index to the next.
    pub strides: [usize; 4],
}

/// How a fresh buffer is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Rows of the last extent, each padded to [`ROW_ALIGNMENT`].
    Rows,
    /// `[b, h, s, e]` in memory as `[b, s, h, e]`, with the row `h · e` padded: what attention writes, so that
    /// merging heads is a view.
    Heads,
    /// Without padding between rows: what a reshape that is not a view writes.
    Dense,
}

impl Operand {
    /// A whole fresh buffer for `shape`, and how many bytes it needs.
    #[must_use]
    pub fn fresh(
        buffer: BufferId,
        dtype: Dtype,
        shape: [usize; 4],
        arrangement: Arrangement,
    ) -> (Self, usize) {
        let [d0, d1, d2, d3] = shape;
        let row = match arrangement {
            Arrangement::Rows => d3.next_multiple_of(ROW_ALIGNMENT),
            Arrangement::Heads => (d1 * d3).next_multiple_of(ROW_ALIGNMENT),
            Arrangement::Dense => d3,
        };
        let (strides, rows) = match arrangement {
            Arrangement::Rows | Arrangement::Dense => ([d1 * d2 * row, d2 * row, row, 1], d0 * d1 * d2),
            Arrangement::Heads => ([d2 * row, d3, row, 1], d0 * d2),
        };
        let elements = rows * row + GUARD_ROWS * row.next_multiple_of(ROW_ALIGNMENT);
        (Self { buffer, dtype, offset: 0, shape, strides }, elements * dtype.bytes())
    }

    fn geometry(&self) -> Geometry {
        Geometry { shape: self.shape, strides: self.strides }
    }

    /// The same elements in row-major order under another shape, if strides can say it.
    #[must_use]
    pub fn reshape(self, shape: [usize; 4]) -> Option<Self> {
        let geometry = self.geometry().reshape(shape).ok()?;
        Some(Self { shape: geometry.shape, strides: geometry.strides, ..self })
    }

    /// Dim `i` of the result is dim `order[i]`.
    #[must_use]
    pub fn permute(self, order: [usize; 4]) -> Self {
        Self { shape: order.map(|d| self.shape[d]), strides: order.map(|d| self.strides[d]), ..self }
    }

    /// `len` indices of `dim` from `start`, each `step`-th. The caller has checked the bounds.
    #[must_use]
    pub fn slice(mut self, dim: usize, start: usize, len: usize, step: usize) -> Self {
        self.offset += start * self.strides[dim];
        self.shape[dim] = len;
        self.strides[dim] *= step;
        self
    }

    /// Repeats extents of 1 up to `shape`.
    #[must_use]
    pub fn broadcast(mut self, shape: [usize; 4]) -> Self {
        for (dim, &extent) in shape.iter().enumerate() {
            if self.shape[dim] == 1 && extent != 1 {
                self.shape[dim] = extent;
                self.strides[dim] = 0;
            }
        }
        self
    }

    /// The same place in another buffer.
    #[must_use]
    pub fn within(self, buffer: BufferId) -> Self {
        Self { buffer, ..self }
    }

    /// Number of elements.
    #[must_use]
    pub fn volume(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it is one row of neighbouring elements.
    #[must_use]
    pub fn is_dense_vector(&self) -> bool {
        self.shape[..3] == [1, 1, 1] && (self.strides[3] == 1 || self.shape[3] == 1)
    }

    /// Whether both name the same elements in the same way.
    #[must_use]
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.offset == other.offset
            && self.shape == other.shape
            && (0..4).all(|d| self.shape[d] == 1 || self.strides[d] == other.strides[d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(shape: [usize; 4], arrangement: Arrangement) -> Operand {
        Operand::fresh(BufferId::Recorded(0), Dtype::Bf16, shape, arrangement).0
    }

    #[test]
    fn heads_split_and_merge_without_a_copy() {
        let qkv = fresh([1, 2, 49, 3 * 4 * 48], Arrangement::Rows).reshape([2, 49, 12, 48]).unwrap();
        let k = qkv.slice(2, 4, 4, 1).permute([0, 2, 1, 3]);
        assert_eq!((k.shape, k.offset), ([2, 4, 49, 48], 4 * 48));
        let attention = fresh([2, 4, 49, 48], Arrangement::Heads);
        let merged = attention.permute([0, 2, 1, 3]).reshape([1, 2, 49, 4 * 48]).unwrap();
        assert_eq!(merged.strides[2], 192);
        assert_eq!(merged.strides[3], 1);
    }

    #[test]
    fn a_reshape_across_padding_is_not_a_view() {
        let x = fresh([1, 1, 4, 33], Arrangement::Rows);
        assert!(x.reshape([1, 1, 2, 66]).is_none());
        assert!(x.reshape([1, 2, 2, 33]).is_some());
        assert!(fresh([1, 1, 4, 33], Arrangement::Dense).reshape([1, 1, 2, 66]).is_some());
    }
}
