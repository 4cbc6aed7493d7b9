//! What happens to a matmul's fp32 sums before they are stored.

use super::check_float;
use crate::activation::Activation;
use crate::error::{Error, Result};
use crate::kernels::{Kernels, PANEL};
use crate::view::{RawView, RawViewMut, View};
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
        if let Some(bias) = self.bias {
            let bias = &bias[column..column + width];
            for row in sums.chunks_exact_mut(PANEL) {
                for (sum, b) in row.iter_mut().zip(bias) {
                    *sum += b;
                }
            }
        }
        if let Some(activation) = self.activation {
            (kernels.activation)(activation, sums);
        }
        let residual = match &self.residual {
            RawResidual::None => None,
            RawResidual::InPlace => Some(out.as_raw()),
            RawResidual::From(view) => Some(*view),
        };
        for (row, sums) in rows.zip(sums.chunks_exact_mut(PANEL)) {
            let sums = &mut sums[..width];
            if let Some(view) = &residual {
                let mut add = [0f32; PANEL];
                // SAFETY: the residual has out's shape, and no one else writes these elements.
                unsafe { view.load(kernels, row, column, &mut add[..width]) };
                for (sum, add) in sums.iter_mut().zip(&add) {
                    *sum += add;
                }
            }
            // SAFETY: the caller's promise.
            unsafe { out.store(kernels, row, column, sums) };
        }
    }
}
