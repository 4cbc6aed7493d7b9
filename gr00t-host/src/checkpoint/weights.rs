//! [`Weights`]: a view of a [`TensorSource`] at a dotted path, the way that model code walks a checkpoint.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use half::bf16;

use super::{TensorInfo, TensorSource};
use crate::{Error, Result};

/// A place in a checkpoint's tree of names.
///
/// ```
/// # use gr00t_host::Weights;
/// fn norm(weights: &Weights, dim: usize) -> gr00t_host::Result<Vec<f32>> {
///     weights.pp("layers").pp(3).pp("norm1").f32("weight", &[dim])
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Weights {
    source: Arc<dyn TensorSource>,
    prefix: String,
}

impl Weights {
    /// The root of `source`.
    pub fn new(source: Arc<dyn TensorSource>) -> Self {
        Self { source, prefix: String::new() }
    }

    /// The place `part` below this one.
    #[must_use]
    pub fn pp(&self, part: impl Display) -> Self {
        Self { source: Arc::clone(&self.source), prefix: self.path(part) }
    }

    /// Full name of `leaf` here.
    pub fn path(&self, leaf: impl Display) -> String {
        if self.prefix.is_empty() { leaf.to_string() } else { format!("{}.{leaf}", self.prefix) }
    }

    /// The source under this view.
    pub fn source(&self) -> &Arc<dyn TensorSource> {
        &self.source
    }

    /// Whether `leaf` exists here.
    pub fn contains(&self, leaf: impl Display) -> bool {
        self.source.info(&self.path(leaf)).is_some()
    }

    /// All of `leaf`, widened exactly to f32, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing or its shape differs from `shape`.
    pub fn f32(&self, leaf: impl Display, shape: &[usize]) -> Result<Vec<f32>> {
        let name = self.checked(leaf, shape)?;
        let mut out = vec![0.0; shape.iter().product()];
        self.source.read_f32(&name, 0, &mut out)?;
        Ok(out)
    }

    /// Rows `rows` of the leading axis of `leaf`, widened exactly to f32, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing, its shape differs from `shape`, or `rows` lies outside it.
    pub fn f32_rows(&self, leaf: impl Display, shape: &[usize], rows: Range<usize>) -> Result<Vec<f32>> {
        let (name, start, len) = self.checked_rows(leaf, shape, rows)?;
        let mut out = vec![0.0; len];
        self.source.read_f32(&name, start, &mut out)?;
        Ok(out)
    }

    /// All of `leaf` as bf16, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing or its shape differs from `shape`.
    pub fn bf16(&self, leaf: impl Display, shape: &[usize]) -> Result<Vec<bf16>> {
        let name = self.checked(leaf, shape)?;
        let mut out = vec![bf16::ZERO; shape.iter().product()];
        self.source.read_bf16(&name, 0, &mut out)?;
        Ok(out)
    }

    /// Rows `rows` of the leading axis of `leaf` as bf16, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing, its shape differs from `shape`, or `rows` lies outside it.
    pub fn bf16_rows(&self, leaf: impl Display, shape: &[usize], rows: Range<usize>) -> Result<Vec<bf16>> {
        let (name, start, len) = self.checked_rows(leaf, shape, rows)?;
        let mut out = vec![bf16::ZERO; len];
        self.source.read_bf16(&name, start, &mut out)?;
        Ok(out)
    }

    fn info(&self, name: &str) -> Result<TensorInfo> {
        self.source
            .info(name)
            .ok_or_else(|| Error::tensor(name, format!("not in {}", self.source.describe())))
    }

    fn checked(&self, leaf: impl Display, shape: &[usize]) -> Result<String> {
        let name = self.path(leaf);
        let info = self.info(&name)?;
        if info.shape != shape {
            return Err(Error::tensor(name, format!("shape {:?}, wanted {shape:?}", info.shape)));
        }
        Ok(name)
    }

    fn checked_rows(
        &self,
        leaf: impl Display,
        shape: &[usize],
        rows: Range<usize>,
    ) -> Result<(String, usize, usize)> {
        let name = self.checked(leaf, shape)?;
        let Some((&leading, rest)) = shape.split_first() else {
            return Err(Error::tensor(name, "a scalar has no rows"));
        };
        if rows.start > rows.end || rows.end > leading {
            return Err(Error::tensor(name, format!("rows {rows:?} outside 0..{leading}")));
        }
        let row: usize = rest.iter().product();
        Ok((name, rows.start * row, rows.len() * row))
    }
}
