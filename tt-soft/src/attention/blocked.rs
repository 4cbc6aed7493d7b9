//! The form of attention for all levels, of bf16 or f32: both products with the matmul tile.

use super::job::{Attention, Form, Job};
use crate::engine::share;
use crate::kernels::{Kernels, PANEL, Tile, TileKernel};
use crate::view::{Dtype, RawView};
use std::ops::Range;

/// Rows that are transposed at a time.
const ROWS: usize = 16;

/// A product's tile, and whether its words are pairs of bf16.
#[derive(Clone, Copy)]
struct Product {
    tile: TileKernel,
    paired: bool,
}

impl Product {
    /// Q with K: pairs of bf16 where that is the faster way and loses nothing of them.
    fn scores(attention: &Attention<'_>) -> Self {
        let exact = [attention.q, attention.k].iter().all(|view| view.dtype == Dtype::Bf16);
        match attention.kernels.tile_bf16 {
            Some(tile) if exact => Self { tile, paired: true },
            _ => Self::f32(attention.kernels),
        }
    }

    fn f32(kernels: &Kernels) -> Self {
        Self { tile: kernels.tile_f32, paired: false }
    }

    /// Words that `count` values along the sum take.
    fn words(self, count: usize) -> usize {
        if self.paired { count.div_ceil(2) } else { count }
    }

    /// Rows of q or k as the first columns of `out` ([word][pitch]), by way of `lines`, which has room for [`ROWS`] of them.
    fn transpose(
        self,
        kernels: &Kernels,
        view: &RawView,
        rows: Range<usize>,
        lines: &mut [u32],
        out: &mut [u32],
        pitch: usize,
    ) {
        let words = self.words(view.geometry.shape[3]);
        for start in rows.clone().step_by(ROWS) {
            let here = start..rows.end.min(start + ROWS);
            for (row, line) in here.clone().zip(lines.chunks_exact_mut(words)) {
                // SAFETY: callers pass rows of the view; f32 words are as many as its width, pairs half as many, rounded up.
                unsafe {
                    if self.paired {
                        view.load_bf16(kernels, row, bytemuck::cast_slice_mut(line));
                    } else {
                        view.load(kernels, row, 0, bytemuck::cast_slice_mut(line));
                    }
                }
            }
            let columns = start - rows.start..here.end - rows.start;
            for (w, out) in out.chunks_exact_mut(pitch).enumerate() {
                for (row, out) in out[columns.clone()].iter_mut().enumerate() {
                    *out = lines[row * words + w];
                }
            }
        }
    }

    /// # Safety
    /// As [`TileKernel::run`], with PANEL as `ldc`.
    unsafe fn run(self, rows: usize, words: usize, a: &[u32], lda: usize, b: &[u32], c: &mut [f32]) {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: the caller's promise.
        unsafe { (self.tile.run)(Tile { rows, words, a, lda, b, c, ldc: PANEL, accumulate: false }) }
    }
}

/// Extents of one attention; words are f32 or pairs of bf16.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    keys: usize,
    value_width: usize,
    /// Words of a row of Q and K.
    width_words: usize,
}

impl Sizes {
    pub(super) fn new(attention: &Attention<'_>) -> Self {
        let [_, _, keys, width] = attention.k.geometry.shape;
        let width_words = Product::scores(attention).words(width);
        Self { keys, value_width: attention.v.geometry.shape[3], width_words }
    }

    fn parts(self) -> [usize; 7] {
        let Self { keys, value_width, width_words } = self;
        [
            width_words * keys,
            value_width.next_multiple_of(PANEL) * keys,
            width_words * PANEL,
            ROWS * width_words,
            keys * PANEL,
            PANEL * PANEL,
            value_width.max(keys),
        ]
    }

    /// Words of scratch per member.
    pub(super) fn total(self) -> usize {
        self.parts().iter().sum()
    }
}

/// A member's scratch.
struct Scratch<'a> {
    /// [block][word of E][key]
    keys: &'a mut [u32],
    /// [panel][T][PANEL]
    values: &'a mut [f32],
    /// [word of E][PANEL]
    queries: &'a mut [u32],
    /// `ROWS` rows on their way into `keys` or `queries`.
    rows: &'a mut [u32],
    /// [T][PANEL]
    scores: &'a mut [f32],
    /// [PANEL queries][PANEL]
    sums: &'a mut [f32],
    /// A row of Ev or T.
    line: &'a mut [f32],
}

impl<'a> Scratch<'a> {
    fn new(mut rest: &'a mut [f32], sizes: Sizes) -> Self {
        let mut take = |len| rest.split_off_mut(..len).unwrap_or_default();
        let [keys, values, queries, rows, scores, sums, line] = sizes.parts().map(&mut take);
        Self {
            keys: bytemuck::cast_slice_mut(keys),
            values,
            queries: bytemuck::cast_slice_mut(queries),
            rows: bytemuck::cast_slice_mut(rows),
            scores,
            sums,
            line,
        }
    }
}

/// A member's form and scratch.
pub(super) struct Blocked<'a> {
    attention: &'a Attention<'a>,
    /// Q with K.
    scores: Product,
    scratch: Scratch<'a>,
}

impl<'a> Blocked<'a> {
    pub(super) fn new(attention: &'a Attention<'a>, sizes: Sizes, scratch: &'a mut [f32]) -> Self {
        Self { attention, scores: Product::scores(attention), scratch: Scratch::new(scratch, sizes) }
    }

    /// K of a head as blocks of up to a tile's rows, [block][word][key].
    fn load_keys(&mut self, kv_head: usize, valid: usize) {
        let Attention { kernels, k, .. } = self.attention;
        let [_, _, keys, width] = k.geometry.shape;
        let words = self.scores.words(width);
        let blocks = valid.div_ceil(self.scores.tile.max_rows);
        for part in (0..blocks).map(|i| share(valid, i, blocks)) {
            let block = &mut self.scratch.keys[part.start * words..part.end * words];
            let rows = kv_head * keys + part.start..kv_head * keys + part.end;
            self.scores.transpose(kernels, k, rows, self.scratch.rows, block, part.len());
        }
    }

    /// V of a head as panels of 32 columns, [panel][key][column].
    fn load_values(&mut self, kv_head: usize, valid: usize) {
        let Attention { kernels, v, .. } = self.attention;
        let Scratch { values, line, .. } = &mut self.scratch;
        let [_, _, keys, width] = v.geometry.shape;
        let line = &mut line[..width];
        for key in 0..valid {
            // SAFETY: the row is inside v.
            unsafe { v.load(kernels, kv_head * keys + key, 0, line) };
            for (panel, part) in line.chunks(PANEL).enumerate() {
                let row = &mut values[(panel * keys + key) * PANEL..][..PANEL];
                row[..part.len()].copy_from_slice(part);
                row[part.len()..].fill(0.0);
            }
        }
    }
}

impl Form for Blocked<'_> {
    fn load(&mut self, kv_head: usize, valid: usize) {
        self.load_keys(kv_head, valid);
        self.load_values(kv_head, valid);
    }

    fn attend(&mut self, job: Job) {
        let Self { attention, scores: product, scratch } = self;
        let Attention { kernels, q, v, out, .. } = attention;
        let Job { valid, first_row, count, .. } = job;
        let [_, _, keys, value_width] = v.geometry.shape;
        let (width, seen) = (q.geometry.shape[3], attention.seen(&job));

        scratch.queries.fill(0);
        let rows = first_row..first_row + count;
        product.transpose(kernels, q, rows, scratch.rows, scratch.queries, PANEL);
        let words = product.words(width);
        let blocks = valid.div_ceil(product.tile.max_rows);
        for part in (0..blocks).map(|i| share(valid, i, blocks)).take_while(|part| part.start < seen) {
            let c = &mut scratch.scores[part.start * PANEL..part.end * PANEL];
            let a = &scratch.keys[part.start * words..];
            // SAFETY: the block of keys has `part.len()` words per word of E, queries PANEL; c has `part.len()` rows of PANEL.
            unsafe { product.run(part.len(), words, a, part.len(), scratch.queries, c) };
        }
        let scores = &mut scratch.scores[..seen * PANEL];
        let scale = attention.apply_masks(&job, scores, scratch.line);
        let mut totals = [0f32; PANEL];
        (kernels.exp_columns)(scores, scale, &mut totals);

        let weighted = Product::f32(kernels);
        let blocks = count.div_ceil(weighted.tile.max_rows);
        for column in (0..value_width).step_by(PANEL) {
            let values = &scratch.values[column / PANEL * keys * PANEL..][..keys * PANEL];
            for part in (0..blocks).map(|i| share(count, i, blocks)) {
                let c = &mut scratch.sums[part.start * PANEL..part.end * PANEL];
                if seen == 0 {
                    c.fill(0.0);
                    continue;
                }
                let (a, b) = (&scores[part.start..], bytemuck::cast_slice(values));
                // SAFETY: scores has PANEL words per key, of which the tile reads `part`; values has PANEL per key; c has
                // `part.len()` rows of PANEL.
                unsafe { weighted.run(part.len(), seen, bytemuck::cast_slice(a), PANEL, b, c) };
            }
            let columns = PANEL.min(value_width - column);
            for (i, sums) in scratch.sums.chunks_exact_mut(PANEL).take(count).enumerate() {
                let inverse = if totals[i] == 0.0 { 0.0 } else { 1.0 / totals[i] };
                for v in sums.iter_mut() {
                    *v *= inverse;
                }
                // SAFETY: each job has its own rows of out.
                unsafe { out.store(kernels, first_row + i, column, &sums[..columns]) };
            }
        }
    }
}
