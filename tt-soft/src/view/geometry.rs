//! Shape and strides of a view: bounds, slices, permutations, reshapes.

use crate::error::{Error, Result};

/// Strides, in elements, of a row-major buffer of this shape.
#[must_use]
pub(crate) fn row_major(shape: [usize; 4]) -> [usize; 4] {
    let mut strides = [1usize; 4];
    for dim in (0..3).rev() {
        strides[dim] = strides[dim + 1].saturating_mul(shape[dim + 1].max(1));
    }
    strides
}

/// Shape and strides; the part that both kinds of view share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub shape: [usize; 4],
    pub strides: [usize; 4],
}

impl Geometry {
    /// Number of logical elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Checks that every element lies within a buffer of `len` elements.
    pub(super) fn check(self, len: usize) -> Result<Self> {
        let error = Error::OutOfBounds { shape: self.shape, strides: self.strides, len };
        if self.shape.contains(&0) {
            return Ok(self);
        }
        let mut end = 1usize;
        let mut count = 1usize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (size - 1).checked_mul(stride).and_then(|r| end.checked_add(r));
            let (Some(reach), Some(total)) = (reach, count.checked_mul(size)) else { return Err(error) };
            (end, count) = (reach, total);
        }
        if end > len { Err(error) } else { Ok(self) }
    }

    /// Checks that no two indices share an element.
    pub(super) fn check_distinct(self) -> Result<Self> {
        let mut dims: [(usize, usize); 4] = std::array::from_fn(|d| (self.strides[d], self.shape[d]));
        dims.sort_unstable();
        let mut extent = 1;
        for (stride, size) in dims.into_iter().filter(|&(_, size)| size > 1) {
            if stride < extent {
                return Err(Error::Overlap { shape: self.shape, strides: self.strides });
            }
            extent += (size - 1) * stride;
        }
        Ok(self)
    }

    pub(super) fn slice(mut self, dim: usize, start: usize, len: usize) -> Result<(Self, usize)> {
        let size = self.shape.get(dim).copied().unwrap_or(0);
        if start.checked_add(len).is_none_or(|end| end > size) {
            return Err(Error::Shape {
                op: "slice",
                what: "start and length",
                got: vec![start, len],
                wanted: vec![dim, size],
            });
        }
        self.shape[dim] = len;
        let offset = if self.shape.contains(&0) { 0 } else { start * self.strides[dim] };
        Ok((self, offset))
    }

    pub(super) fn permute(self, order: [usize; 4]) -> Result<Self> {
        let mut sorted = order;
        sorted.sort_unstable();
        if sorted != [0, 1, 2, 3] {
            return Err(Error::Shape {
                op: "permute",
                what: "order",
                got: order.into(),
                wanted: vec![0, 1, 2, 3],
            });
        }
        Ok(Self { shape: order.map(|d| self.shape[d]), strides: order.map(|d| self.strides[d]) })
    }

    pub(crate) fn reshape(self, shape: [usize; 4]) -> Result<Self> {
        let count = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        if count != Some(self.len()) {
            return Err(Error::Shape {
                op: "reshape",
                what: "view",
                got: shape.into(),
                wanted: self.shape.into(),
            });
        }
        if count == Some(0) {
            return Ok(Self { shape, strides: row_major(shape) });
        }
        // Runs of old dimensions that lie in memory like one dimension, innermost first.
        let mut runs: Vec<(usize, usize)> = Vec::with_capacity(4);
        for dim in (0..4).rev().filter(|&d| self.shape[d] > 1) {
            match runs.last_mut() {
                Some((size, stride)) if *size * *stride == self.strides[dim] => *size *= self.shape[dim],
                _ => runs.push((self.shape[dim], self.strides[dim])),
            }
        }
        let mut strides = [1; 4];
        let mut runs = runs.into_iter();
        let (mut left, mut next) = runs.next().unwrap_or((1, 1));
        for dim in (0..4).rev() {
            if shape[dim] == 1 {
                strides[dim] = next;
                continue;
            }
            if left == 1 {
                (left, next) = runs.next().unwrap_or((1, 1));
            }
            if left % shape[dim] != 0 {
                let wanted = "a layout in which the new shape is a view";
                return Err(Error::Layout { op: "reshape", what: "view", got: self.strides, wanted });
            }
            strides[dim] = next;
            left /= shape[dim];
            next *= shape[dim];
        }
        Ok(Self { shape, strides })
    }
}
