//! layer_norm and rms_norm over the last dimension, with fp32 statistics in two passes.

use crate::engine::{Engine, Need};
use crate::error::{Error, Result};
use crate::kernels::NormRow;
use crate::matmul::check_float;
use crate::view::{View, ViewMut};

/// Weight, bias and constant of a norm.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// One value per column, 1 where absent.
    pub weight: Option<&'a [f32]>,
    /// One value per column, 0 where absent.
    pub bias: Option<&'a [f32]>,
    /// Added to the variance (the mean square) before the root.
    pub eps: f32,
}

/// `out = (x - mean) / sqrt(variance + eps) * weight + bias`, row by row.
///
/// x and out have the same shape, float32 or bfloat16. The mean is taken in two steps, so that rows far from 0
/// keep their precision.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn layer_norm(engine: &Engine, x: &View<'_>, norm: &Norm<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    run(engine, "layer_norm", x, norm, out, engine.kernels().layer_norm)
}

/// `out = x / sqrt(mean(x^2) + eps) * weight + bias`, row by row.
///
/// x and out have the same shape, float32 or bfloat16.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn rms_norm(engine: &Engine, x: &View<'_>, norm: &Norm<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    run(engine, "rms_norm", x, norm, out, engine.kernels().rms_norm)
}

fn run(
    engine: &Engine,
    op: &'static str,
    x: &View<'_>,
    norm: &Norm<'_>,
    out: &mut ViewMut<'_>,
    row_kernel: fn(&mut [f32], NormRow<'_>),
) -> Result<()> {
    let shape = x.shape();
    if out.shape() != shape {
        return Err(Error::Shape { op, what: "out", got: out.shape().into(), wanted: shape.into() });
    }
    check_float(op, "x", x.dtype())?;
    check_float(op, "out", out.dtype())?;
    let width = shape[3];
    for (what, values) in [("weight", norm.weight), ("bias", norm.bias)] {
        if let Some(values) = values.filter(|values| values.len() != width) {
            return Err(Error::Shape { op, what, got: vec![values.len()], wanted: vec![width] });
        }
    }
    if out.is_empty() {
        return Ok(());
    }
    let (x, out, kernels) = (x.raw(), out.raw(), engine.kernels());
    let norm = NormRow { weight: norm.weight, bias: norm.bias, eps: norm.eps };
    let need = Need { jobs: x.geometry.rows(), work: x.geometry.len(), floats: width };
    engine.session().run(need, &|rows, buf| {
        for row in rows {
            // SAFETY: `row` is a row of both views, and each row of out has one writer.
            unsafe {
                x.load(kernels, row, 0, buf);
                row_kernel(buf, norm);
                out.store(kernels, row, 0, buf);
            }
        }
    })
}

#[cfg(test)]
#[path = "norm_tests.rs"]
mod tests;
