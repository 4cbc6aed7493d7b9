//! Product of two activations, batch by batch.
//!
//! A job is up to `JOB_ROWS` rows of one batch entry. Its rows of `a` are transposed to the tile's order once; each panel
//! of `b` is converted to fp32 by every job that needs it.

use super::driver::RUN;
use super::{check_dense, check_float};
use crate::engine::{Engine, Need, share};
use crate::error::{Error, Result};
use crate::kernels::{Kernels, PANEL, Tile};
use crate::view::{RawView, RawViewMut, View, ViewMut};
use std::ops::Range;

/// Rows of a job.
const JOB_ROWS: usize = 96;

/// `out = a b`, or `a b^T` with `transpose_b`, in fp32 whatever the dtypes; rounded once when it is stored.
///
/// a is [B0, B1, M, K], b [B0 or 1, B1 or 1, K, N] ([.., N, K] transposed), out [B0, B1, M, N] with contiguous rows; all in
/// float32 or bfloat16.
///
/// # Errors
/// If shapes, dtypes or out's layout do not fit.
pub fn matmul(
    engine: &Engine,
    a: &View<'_>,
    b: &View<'_>,
    transpose_b: bool,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    const OP: &str = "matmul";
    let s = a.shape();
    let b = if transpose_b { b.permute([0, 1, 3, 2])? } else { *b };
    let n = b.shape()[3];
    let b = b.broadcast([s[0], s[1], s[3], n]).map_err(|_| Error::Shape {
        op: OP,
        what: "b",
        got: b.shape().into(),
        wanted: vec![s[0], s[1], s[3], n],
    })?;
    let wanted = [s[0], s[1], s[2], n];
    if out.shape() != wanted {
        return Err(Error::Shape { op: OP, what: "out", got: out.shape().into(), wanted: wanted.into() });
    }
    check_float(OP, "a", a.dtype())?;
    check_float(OP, "b", b.dtype())?;
    check_float(OP, "out", out.dtype())?;
    check_dense(OP, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let (m, k) = (s[2], s[3]);
    let product = Product {
        kernels: engine.kernels(),
        a: a.raw(),
        b: b.raw(),
        out: out.raw(),
        blocks: m.div_ceil(JOB_ROWS),
    };
    let jobs = s[0] * s[1] * product.blocks;
    let floats = k * JOB_ROWS + RUN * PANEL + JOB_ROWS * PANEL + k.max(PANEL);
    let need = Need { jobs, work: out.len().saturating_mul(k.max(1)) / PANEL, floats };
    engine.session().run(need, &|jobs, scratch| {
        for job in jobs {
            product.run(job, scratch);
        }
    })
}

struct Product {
    kernels: &'static Kernels,
    a: RawView,
    b: RawView,
    out: RawViewMut,
    /// Jobs per batch entry.
    blocks: usize,
}

impl Product {
    fn run(&self, job: usize, scratch: &mut [f32]) {
        let [_, _, m, k] = self.a.geometry.shape;
        let n = self.out.geometry.shape[3];
        let (batch, block) = (job / self.blocks, job % self.blocks);
        let rows = share(m, block, self.blocks);
        let (packed, scratch) = scratch.split_at_mut(k * JOB_ROWS);
        let (run, scratch) = scratch.split_at_mut(RUN * PANEL);
        let (sums, line) = scratch.split_at_mut(JOB_ROWS * PANEL);
        let height = rows.len();
        for (i, row) in rows.clone().enumerate() {
            // SAFETY: row and columns are inside a.
            unsafe { self.a.load(self.kernels, batch * m + row, 0, &mut line[..k]) };
            for (word, v) in packed.chunks_exact_mut(height).zip(&line[..k]) {
                word[i] = *v;
            }
        }
        for column in (0..n).step_by(PANEL) {
            let width = PANEL.min(n - column);
            sums[..height * PANEL].fill(0.0);
            for k0 in (0..k).step_by(RUN) {
                let words = k0..k.min(k0 + RUN);
                self.load_panel(batch, words.clone(), column, width, run);
                self.multiply(&words, packed, run, &mut sums[..height * PANEL]);
            }
            for (row, sums) in rows.clone().zip(sums.chunks_exact(PANEL)) {
                // SAFETY: each job has its own rows of out.
                unsafe { self.out.store(self.kernels, batch * m + row, column, &sums[..width]) };
            }
        }
    }

    /// Rows `words` of a panel of b as [k][PANEL].
    fn load_panel(&self, batch: usize, words: Range<usize>, column: usize, width: usize, run: &mut [f32]) {
        let k = self.b.geometry.shape[2];
        for (word, row) in words.zip(run.chunks_exact_mut(PANEL)) {
            row[width..].fill(0.0);
            // SAFETY: row and columns are inside b.
            unsafe { self.b.load(self.kernels, batch * k + word, column, &mut row[..width]) };
        }
    }

    fn multiply(&self, words: &Range<usize>, packed: &[f32], run: &[f32], sums: &mut [f32]) {
        let height = sums.len() / PANEL;
        let blocks = height.div_ceil(self.kernels.tile_f32.max_rows);
        for block in 0..blocks {
            let rows = share(height, block, blocks);
            let a = &packed[words.start * height + rows.start..words.end * height];
            let c = &mut sums[rows.start * PANEL..rows.end * PANEL];
            // SAFETY: a has `height` words per word of K of which the tile reads `rows.len()` from `rows.start` on;
            // run has PANEL words per word of K; c has `rows.len()` rows of PANEL floats.
            unsafe {
                (self.kernels.tile_f32.run)(Tile {
                    rows: rows.len(),
                    words: words.len(),
                    a: a.as_ptr().cast(),
                    lda: height,
                    b: run.as_ptr().cast(),
                    c: c.as_mut_ptr(),
                    ldc: PANEL,
                    accumulate: true,
                });
            }
        }
    }
}
