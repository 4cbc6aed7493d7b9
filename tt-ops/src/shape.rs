//! Logical shapes of rank 1 to 4, row-major.

use serde::{Serialize, Serializer};

/// Highest rank.
pub const MAX_RANK: usize = 4;

/// A logical shape: tile padding is never part of it.
///
/// ```
/// use tt_ops::Shape;
/// let shape = Shape::from([2, 49, 1536]);
/// assert_eq!(shape.rank(), 3);
/// assert_eq!(shape.volume(), 2 * 49 * 1536);
/// assert_eq!(shape.to_string(), "[2, 49, 1536]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// A shape from at most four extents; `None` for none or more than four.
    pub fn new(dims: &[usize]) -> Option<Self> {
        if dims.is_empty() || dims.len() > MAX_RANK {
            return None;
        }
        let mut all = [1; MAX_RANK];
        all[..dims.len()].copy_from_slice(dims);
        Some(Self { dims: all, rank: dims.len() as u8 })
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank()]
    }

    /// How many extents.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Number of elements (saturating: no tensor has `usize::MAX` of them).
    pub fn volume(&self) -> usize {
        self.dims().iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// The last extent: elements of a row.
    pub fn last(&self) -> usize {
        self.dims[self.rank() - 1]
    }

    /// Number of rows: the product of all extents but the last.
    pub fn rows(&self) -> usize {
        self.dims()[..self.rank() - 1].iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// The same with the last extent replaced.
    #[must_use]
    pub fn with_last(mut self, last: usize) -> Self {
        self.dims[self.rank() - 1] = last;
        self
    }

    /// The same with extent `dim` replaced; unchanged where there is no such extent.
    #[must_use]
    pub fn with_dim(mut self, dim: usize, extent: usize) -> Self {
        if dim < self.rank() {
            self.dims[dim] = extent;
        }
        self
    }

    /// Extents as four, with ones in front.
    pub fn as_rank4(&self) -> [usize; MAX_RANK] {
        let mut out = [1; MAX_RANK];
        out[MAX_RANK - self.rank()..].copy_from_slice(self.dims());
        out
    }

    /// `dim` counted from the front; negative values count from the back, as in TTNN.
    pub fn axis(&self, dim: i32) -> Option<usize> {
        let rank = self.rank as i32;
        let axis = if dim < 0 { dim + rank } else { dim };
        (0..rank).contains(&axis).then_some(axis as usize)
    }

    /// The shape that two operands broadcast to: extents aligned at the end are equal or one of them is 1.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let (a, b) = (self.as_rank4(), other.as_rank4());
        let mut out = [1; MAX_RANK];
        for i in 0..MAX_RANK {
            out[i] = match (a[i], b[i]) {
                (x, y) if x == y => x,
                (1, y) => y,
                (x, 1) => x,
                _ => return None,
            };
        }
        Self::new(&out[MAX_RANK - self.rank().max(other.rank())..])
    }
}

macro_rules! from_array {
    ($($n:literal),*) => {$(
        impl From<[usize; $n]> for Shape {
            fn from(dims: [usize; $n]) -> Self {
                let mut all = [1; MAX_RANK];
                all[..$n].copy_from_slice(&dims);
                Self { dims: all, rank: $n }
            }
        }
    )*};
}
from_array!(1, 2, 3, 4);

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_aligns_at_the_end_and_stretches_ones() {
        let row = Shape::from([7]);
        let matrix = Shape::from([3, 1, 7]);
        let batch = Shape::from([2, 1, 5, 7]);
        assert_eq!(row.broadcast(&matrix), Some(matrix));
        assert_eq!(matrix.broadcast(&batch), Some(Shape::from([2, 3, 5, 7])));
        assert_eq!(Shape::from([2]).broadcast(&row), None);
    }

    #[test]
    fn negative_dims_count_from_the_back() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape.axis(-1), Some(2));
        assert_eq!(shape.axis(0), Some(0));
        assert_eq!(shape.axis(3), None);
        assert_eq!(shape.axis(-4), None);
    }
}
