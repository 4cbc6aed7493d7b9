//! What happens to a matmul's fp32 sums before they are stored.

use super::check_float;
use crate::activation::Activation;
use crate::eltwise::Binary;
use crate::error::{Error, Result};
use crate::kernels::{Kernels, PANEL};
use crate::view::{Dtype, Geometry, RawView, RawViewMut, View};
use half::bf16;
use std::ops::Range;

/// What is added after the activation.
#[derive(Debug, Clone, Copy, Default)]
pub enum Residual<'a> {
    /// Nothing.
    #[default]
    None,
    /// What `out` holds.
    InPlace,
    /// A view of out's shape, float32 or bfloat16.
    From(View<'a>),
}

/// `activation(sum + bias) + residual`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// N values.
    pub bias: Option<&'a [f32]>,
    /// Applied after the bias.
    pub activation: Option<Activation>,
    /// Added last.
    pub residual: Residual<'a>,
}

/// As [`Epilogue`], without views.
pub(super) struct RawEpilogue<'a> {
    bias: Option<&'a [f32]>,
    activation: Option<Activation>,
    residual: RawResidual,
}

enum RawResidual {
    None,
    InPlace,
    From(RawView),
}

impl<'a> Epilogue<'a> {
    pub(super) fn check(&self, op: &'static str, out: [usize; 4]) -> Result<()> {
        if let Some(bias) = self.bias.filter(|bias| bias.len() != out[3]) {
            return Err(Error::Shape { op, what: "bias", got: vec![bias.len()], wanted: vec![out[3]] });
        }
        if let Residual::From(view) = &self.residual {
            if view.shape() != out {
                return Err(Error::Shape {
                    op,
                    what: "residual",
                    got: view.shape().into(),
                    wanted: out.into(),
                });
            }
            check_float(op, "residual", view.dtype())?;
        }
        Ok(())
    }

    pub(super) fn raw(&self) -> RawEpilogue<'a> {
        let residual = match &self.residual {
            Residual::None => RawResidual::None,
            Residual::InPlace => RawResidual::InPlace,
            Residual::From(view) => RawResidual::From(view.raw()),
        };
        RawEpilogue { bias: self.bias, activation: self.activation, residual }
    }
}

/// Rows that are finished at a time: what is added and what is stored stay in L1, and loops over them are long.
const ROWS: usize = 16;
/// Their elements, [row][PANEL].
const ELEMENTS: usize = ROWS * PANEL;

impl RawEpilogue<'_> {
    /// Finishes a block of sums ([row][PANEL]) that starts at column `column` and stores it as rows `rows` of `out`.
    ///
    /// # Safety
    /// These rows and columns of `out` are this thread's alone; the residual has out's shape.
    pub(super) unsafe fn apply(
        &self,
        kernels: &Kernels,
        sums: &mut [f32],
        rows: Range<usize>,
        column: usize,
        out: &RawViewMut,
    ) {
        let width = PANEL.min(out.geometry.shape[3] - column);
        let mut bias = [0f32; ELEMENTS];
        if let Some(values) = self.bias {
            for row in bias.chunks_exact_mut(PANEL).take(rows.len()) {
                row[..width].copy_from_slice(&values[column..column + width]);
            }
        }
        let residual = match &self.residual {
            RawResidual::None => None,
            RawResidual::InPlace => Some(out.as_raw()),
            RawResidual::From(view) => Some(*view),
        };
        for (first, sums) in rows.step_by(ROWS).zip(sums.chunks_mut(ELEMENTS)) {
            if self.bias.is_some() {
                (kernels.binary)(Binary::Add, sums, &bias[..sums.len()]);
            }
            if let Some(activation) = self.activation {
                (kernels.activation)(activation, sums);
            }
            if let Some(view) = &residual {
                let mut add = [0f32; ELEMENTS];
                let add = &mut add[..sums.len()];
                // SAFETY: the residual has out's shape, and no one else writes these elements.
                unsafe { load(kernels, view, first, column, width, add) };
                (kernels.binary)(Binary::Add, sums, add);
            }
            // SAFETY: the caller's promise.
            unsafe { store(kernels, sums, out, first, column, width) };
        }
    }
}

/// Where `count` rows from `first` on begin in a view, at column `column`, in elements.
fn starts(
    geometry: &Geometry,
    first: usize,
    count: usize,
    column: usize,
) -> impl Iterator<Item = usize> + '_ {
    // Rows of one matrix are evenly spaced; finding where one begins takes two divisions.
    let (height, pitch) = (geometry.shape[2], geometry.strides[2]);
    let (mut within, mut at) = (first % height, geometry.row_start(first));
    (first..first + count).map(move |row| {
        if within == height {
            (within, at) = (0, geometry.row_start(row));
        }
        let start = at + column;
        (within, at) = (within + 1, at + pitch);
        start
    })
}

/// Part of rows of a view as [row][PANEL].
///
/// # Safety
/// As [`RawView::load`].
unsafe fn load(kernels: &Kernels, view: &RawView, first: usize, column: usize, width: usize, to: &mut [f32]) {
    let rows = to.chunks_exact_mut(PANEL);
    let starts = starts(&view.geometry, first, rows.len(), column);
    // SAFETY: the caller's promise; a row's elements from `column` on are `width` neighbours where rows are dense.
    unsafe {
        match view.dtype {
            Dtype::F32 if view.geometry.dense_rows() => {
                rows.zip(starts).for_each(|(row, at)| copy_row(view.element(at), row.as_mut_ptr(), width));
            }
            Dtype::Bf16 if view.geometry.dense_rows() => {
                let mut narrow = [bf16::ZERO; ELEMENTS];
                let narrow = &mut narrow[..rows.len() * PANEL];
                for (row, at) in narrow.chunks_exact_mut(PANEL).zip(starts) {
                    copy_row(view.element(at), row.as_mut_ptr(), width);
                }
                (kernels.widen)(narrow, to);
            }
            _ => {
                for (i, row) in rows.enumerate() {
                    view.load(kernels, first + i, column, &mut row[..width]);
                }
            }
        }
    }
}

/// A block [row][PANEL] as part of rows of `out`, which are dense.
///
/// # Safety
/// As [`RawViewMut::store`].
unsafe fn store(
    kernels: &Kernels,
    sums: &[f32],
    out: &RawViewMut,
    first: usize,
    column: usize,
    width: usize,
) {
    let rows = sums.chunks_exact(PANEL);
    let starts = starts(&out.geometry, first, rows.len(), column);
    // SAFETY: as in `load`.
    unsafe {
        match out.dtype {
            Dtype::F32 => {
                rows.zip(starts).for_each(|(row, at)| copy_row(row.as_ptr(), out.element(at), width));
            }
            Dtype::Bf16 => {
                let mut narrow = [bf16::ZERO; ELEMENTS];
                let narrow = &mut narrow[..sums.len()];
                (kernels.narrow)(sums, narrow);
                for (row, at) in narrow.chunks_exact(PANEL).zip(starts) {
                    copy_row(row.as_ptr(), out.element(at), width);
                }
            }
            _ => {
                for (i, row) in rows.enumerate() {
                    out.store(kernels, first + i, column, &row[..width]);
                }
            }
        }
    }
}

/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
unsafe fn copy_row<T>(from: *const T, to: *mut T, width: usize) {
    // SAFETY: the caller's promise; a length that is known makes a few moves of it.
    unsafe {
        if width == PANEL {
            std::ptr::copy_nonoverlapping(from, to, PANEL);
        } else {
            std::ptr::copy_nonoverlapping(from, to, width);
        }
    }
}
