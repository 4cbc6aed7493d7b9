//! One block of 32 queries of one head: scores, softmax, product with V.

use super::scratch::{Scratch, Sizes};
use super::{Form, Job};
use crate::engine::share;
use crate::kernels::{Kernels, PANEL, Tile, TileKernel};
use crate::view::{RawView, RawViewMut};

/// A mask, broadcast to [B, H, S, T].
pub(super) struct Mask {
    pub(super) view: RawView,
    /// The same for all queries of a head.
    pub(super) shared: bool,
}

/// A product's tile, and whether its words are pairs of bf16.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) tile: TileKernel,
    pub(super) paired: bool,
}

impl Product {
    /// Pairs of bf16 where that is the faster way and loses nothing of `exact` operands.
    pub(super) fn new(kernels: &Kernels, exact: bool) -> Self {
        match kernels.tile_bf16 {
            Some(tile) if exact => Self { tile, paired: true },
            _ => Self { tile: kernels.tile_f32, paired: false },
        }
    }

    /// Words that `count` values along the sum take.
    pub(super) fn words(self, count: usize) -> usize {
        if self.paired { count.div_ceil(2) } else { count }
    }
}

pub(super) struct Attention<'a> {
    pub(super) kernels: &'static Kernels,
    pub(super) q: RawView,
    pub(super) k: RawView,
    pub(super) v: RawView,
    pub(super) out: RawViewMut,
    pub(super) mask: Option<Mask>,
    pub(super) scale: f32,
    pub(super) causal: bool,
    pub(super) kv_valid: Option<&'a [usize]>,
    /// Blocks of queries per head.
    pub(super) blocks: usize,
    /// Q with K.
    pub(super) scores: Product,
}

impl Attention<'_> {
    pub(super) fn sizes(&self) -> Sizes {
        let ([_, _, keys, width], value_width) = (self.k.geometry.shape, self.v.geometry.shape[3]);
        Sizes { keys, width, value_width, width_words: self.scores.words(width) }
    }

    /// Keys that a job looks at.
    pub(super) fn seen(&self, job: &Job) -> usize {
        if self.causal { job.valid.min(job.first + job.count) } else { job.valid }
    }

    /// K of a head as blocks of up to a tile's rows, [block][word][key].
    fn load_keys(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let keys = self.k.geometry.shape[2];
        let words = self.scores.words(self.k.geometry.shape[3]);
        let blocks = valid.div_ceil(self.scores.tile.max_rows);
        for part in (0..blocks).map(|i| share(valid, i, blocks)) {
            let block = &mut scratch.keys[part.start * words..part.end * words];
            self.transpose(
                &self.k,
                kv_head * keys + part.start,
                part.len(),
                scratch.lines,
                scratch.rows,
                block,
                part.len(),
            );
        }
    }

    /// V of a head as panels of 32 columns, [panel][key][column].
    fn load_values(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let [_, _, keys, width] = self.v.geometry.shape;
        for key in 0..valid {
            let line = &mut scratch.lines[..width];
            // SAFETY: the row is inside v.
            unsafe { self.v.load(self.kernels, kv_head * keys + key, 0, line) };
            for (panel, part) in line.chunks(PANEL).enumerate() {
                let row = &mut scratch.values[(panel * keys + key) * PANEL..][..PANEL];
                row[..part.len()].copy_from_slice(part);
                row[part.len()..].fill(0.0);
            }
        }
    }

    fn attend(&self, job: &Job, scratch: &mut Scratch<'_>) {
        let &Job { valid, first_row, count, .. } = job;
        let [_, _, keys, value_width] = self.v.geometry.shape;
        let (width, seen) = (self.q.geometry.shape[3], self.seen(job));

        scratch.queries.fill(0);
        self.transpose(&self.q, first_row, count, scratch.lines, scratch.rows, scratch.queries, PANEL);
        let words = self.scores.words(width);
        let blocks = valid.div_ceil(self.scores.tile.max_rows);
        for part in (0..blocks).map(|i| share(valid, i, blocks)).take_while(|part| part.start < seen) {
            let c = &mut scratch.scores[part.start * PANEL..part.end * PANEL];
            let a = &scratch.keys[part.start * words..];
            // SAFETY: the block of keys has `part.len()` words per word of E, queries PANEL; c has `part.len()` rows of PANEL.
            unsafe { tile(self.scores, part.len(), words, a, part.len(), scratch.queries, c) };
        }
        let scores = &mut scratch.scores[..seen * PANEL];
        let scale = self.apply_masks(job, scores, scratch.lines);
        let mut totals = [0f32; PANEL];
        (self.kernels.exp_columns)(scores, scale, &mut totals);

        let weighted = Product { tile: self.kernels.tile_f32, paired: false };
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
                unsafe { tile(weighted, part.len(), seen, bytemuck::cast_slice(a), PANEL, b, c) };
            }
            let columns = PANEL.min(value_width - column);
            for (i, sums) in scratch.sums.chunks_exact_mut(PANEL).take(count).enumerate() {
                let inverse = if totals[i] == 0.0 { 0.0 } else { 1.0 / totals[i] };
                for v in sums.iter_mut() {
                    *v *= inverse;
                }
                // SAFETY: each job has its own rows of out.
                unsafe { self.out.store(self.kernels, first_row + i, column, &sums[..columns]) };
            }
        }
    }

    /// Hides and shifts scores ([key][PANEL]); gives the factor that they are still to be multiplied with. `line` has room for
    /// as many values as there are keys.
    pub(super) fn apply_masks(&self, job: &Job, scores: &mut [f32], line: &mut [f32]) -> f32 {
        let &Job { first_row, first, count, .. } = job;
        let mut scale = self.scale;
        // hidden scores are -inf, which no other factor would leave so
        if self.mask.is_some() || scale <= 0.0 {
            for score in scores.iter_mut() {
                *score *= scale;
            }
            scale = 1.0;
        }
        if let Some(mask) = &self.mask {
            let line = &mut line[..scores.len() / PANEL];
            let rows = if mask.shared { 1 } else { count };
            for i in 0..rows {
                // SAFETY: the mask was broadcast to [B, H, S, T].
                unsafe { mask.view.load(self.kernels, first_row + i, 0, line) };
                for (scores, m) in scores.chunks_exact_mut(PANEL).zip(line.iter()) {
                    let lanes = if mask.shared { 0..PANEL } else { i..i + 1 };
                    scores[lanes].iter_mut().for_each(|score| *score += m);
                }
            }
        }
        if self.causal {
            for (key, scores) in scores.chunks_exact_mut(PANEL).enumerate().skip(first + 1) {
                scores[..(key - first).min(PANEL)].fill(f32::NEG_INFINITY);
            }
        }
        scale
    }

    /// Rows `first .. first + count` of q or k as the columns `0..count` of `out` ([word][pitch]).
    #[allow(clippy::too_many_arguments, reason = "scratch comes in parts, so that each has its one borrower")]
    fn transpose(
        &self,
        view: &RawView,
        first: usize,
        count: usize,
        line: &mut [f32],
        rows: &mut [u32],
        out: &mut [u32],
        pitch: usize,
    ) {
        let width = view.geometry.shape[3];
        let words = self.scores.words(width);
        for start in (0..count).step_by(ROWS) {
            let here = ROWS.min(count - start);
            for (row, values) in rows.chunks_exact_mut(words).take(here).enumerate() {
                let row = first + start + row;
                // SAFETY: callers pass rows of the view; f32 words are as many as its width, pairs are of bf16.
                unsafe {
                    if self.scores.paired {
                        self.load_pairs(view, row, line, values);
                    } else {
                        view.load(self.kernels, row, 0, bytemuck::cast_slice_mut(values));
                    }
                }
            }
            for (w, out) in out.chunks_exact_mut(pitch).enumerate() {
                for (row, out) in out[start..start + here].iter_mut().enumerate() {
                    *out = rows[row * words + w];
                }
            }
        }
    }
}

impl Attention<'_> {
    /// A row of bf16 as pairs. `line` has room for it.
    ///
    /// # Safety
    /// As [`RawView::load_pairs`], of a view of bf16.
    pub(super) unsafe fn load_pairs(&self, view: &RawView, row: usize, line: &mut [f32], out: &mut [u32]) {
        // SAFETY: the caller's promise.
        unsafe {
            if view.load_pairs(row, out) {
                return;
            }
            let line = &mut line[..view.geometry.shape[3]];
            view.load(self.kernels, row, 0, line);
            for (word, pair) in out.iter_mut().zip(line.chunks(2)) {
                let odd = pair.get(1).map_or(0, |odd| odd.to_bits());
                *word = pair[0].to_bits() >> 16 | odd & 0xffff_0000;
            }
        }
    }
}

/// An attention with tiles of AVX-512 or less, and a member's scratch.
pub(super) struct Blocked<'a> {
    attention: &'a Attention<'a>,
    scratch: Scratch<'a>,
}

impl<'a> Blocked<'a> {
    pub(super) fn new(attention: &'a Attention<'a>, sizes: Sizes, scratch: &'a mut [f32]) -> Self {
        Self { attention, scratch: Scratch::new(scratch, sizes) }
    }
}

impl Form for Blocked<'_> {
    fn load(&mut self, kv_head: usize, valid: usize) {
        self.attention.load_keys(kv_head, valid, &mut self.scratch);
        self.attention.load_values(kv_head, valid, &mut self.scratch);
    }

    fn attend(&mut self, job: Job) {
        self.attention.attend(&job, &mut self.scratch);
    }
}

/// Rows that are transposed at a time.
pub(super) const ROWS: usize = 16;

/// # Safety
/// As [`TileKernel::run`], with PANEL as `ldc`.
unsafe fn tile(product: Product, rows: usize, words: usize, a: &[u32], lda: usize, b: &[u32], c: &mut [f32]) {
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: the caller's promise.
    unsafe { (product.tile.run)(Tile { rows, words, a, lda, b, c, ldc: PANEL, accumulate: false }) }
}
