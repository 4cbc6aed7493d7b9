//! One block of 32 queries of one head: scores, softmax, product with V.

use super::scratch::{Scratch, Sizes};
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

    pub(super) fn valid_keys(&self, batch: usize, keys: usize) -> usize {
        self.kv_valid.and_then(|valid| valid.get(batch).copied()).unwrap_or(keys)
    }

    /// K of a head as blocks of up to a tile's rows, [block][word][key].
    pub(super) fn load_keys(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
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
    pub(super) fn load_values(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
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

    /// One block of queries of head `head`, counted through the batch.
    pub(super) fn attend(&self, head: usize, block: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let [_, _, queries, width] = self.q.geometry.shape;
        let [_, _, keys, value_width] = self.v.geometry.shape;
        let first = block * PANEL;
        let count = PANEL.min(queries - first);
        let seen = if self.causal { valid.min(first + count) } else { valid };
        let first_row = head * queries + first;

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
        let scale = self.apply_masks(first_row, first, count, seen, scores, scratch.lines);
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

    /// Hides and shifts scores; gives the factor that they are still to be multiplied with.
    fn apply_masks(
        &self,
        first_row: usize,
        first: usize,
        count: usize,
        seen: usize,
        scores: &mut [f32],
        line: &mut [f32],
    ) -> f32 {
        let mut scale = self.scale;
        // hidden scores are -inf, which no other factor would leave so
        if self.mask.is_some() || scale <= 0.0 {
            for score in scores.iter_mut() {
                *score *= scale;
            }
            scale = 1.0;
        }
        if let Some(mask) = &self.mask {
            let line = &mut line[..seen];
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
                if !self.scores.paired {
                    // SAFETY: callers pass rows of the view; f32 words are as many as its width.
                    unsafe { view.load(self.kernels, row, 0, bytemuck::cast_slice_mut(values)) };
                // SAFETY: as above; words are pairs only where the view is of bf16.
                } else if !unsafe { view.load_pairs(row, values) } {
                    let line = &mut line[..width];
                    // SAFETY: as above.
                    unsafe { view.load(self.kernels, row, 0, line) };
                    for (word, pair) in values.iter_mut().zip(line.chunks(2)) {
                        let odd = pair.get(1).map_or(0, |odd| odd.to_bits());
                        *word = pair[0].to_bits() >> 16 | odd & 0xffff_0000;
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

/// Rows that are transposed at a time.
pub(super) const ROWS: usize = 16;

/// # Safety
/// As [`TileKernel::run`], with PANEL as `ldc`.
unsafe fn tile(product: Product, rows: usize, words: usize, a: &[u32], lda: usize, b: &[u32], c: &mut [f32]) {
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: the caller's promise.
    unsafe { (product.tile.run)(Tile { rows, words, a, lda, b, c, ldc: PANEL, accumulate: false }) }
}
