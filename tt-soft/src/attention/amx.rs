//! The form of attention for AMX, of bf16 inputs: both products with tiles, the exponential between them with AVX-512.
//!
//! ```text
//! scores  [key][32 queries]     K as it is, rows of pairs        x  Q transposed, [pair of E][32 queries]
//! result  [column][32 queries]  V transposed, [column][pairs]    x  probabilities, [pair of keys][32 queries], twice
//! ```
//! A probability goes in as two bf16, the second being what rounding takes from the first: as precise as the other forms, for a
//! product more where the exponential takes most of the time. K and V of a head are laid out once per member and head, in rows
//! an odd number of cache lines apart.

use super::job::{Attention, Form, Job};
use crate::kernels::PANEL;
use crate::kernels::amx::{
    Beside, Block, Configured, SIDE, STEP_WORDS, TILE_FLOATS, multiply, pair_up, pitch_of, scale_columns,
    split_columns, steps_of, transpose,
};

/// Extents of one attention, rounded up to tiles.
#[derive(Clone, Copy)]
pub(super) struct TiledSizes {
    keys: usize,
    width: usize,
    value_width: usize,
}

impl TiledSizes {
    pub(super) fn new(attention: &Attention<'_>) -> Self {
        let [_, _, keys, width] = attention.k.geometry.shape;
        Self { keys, width, value_width: attention.v.geometry.shape[3] }
    }

    /// Steps of a score's sum.
    fn width_steps(self) -> usize {
        steps_of(self.width)
    }

    fn key_pitch(self) -> usize {
        pitch_of(self.width_steps())
    }

    fn value_pitch(self) -> usize {
        pitch_of(steps_of(self.keys))
    }

    /// Columns of V, in whole tiles.
    fn columns(self) -> usize {
        self.value_width.next_multiple_of(SIDE)
    }

    fn parts(self) -> [usize; 8] {
        let keys = self.keys.next_multiple_of(SIDE);
        [
            keys * self.key_pitch(),
            self.columns() * self.value_pitch(),
            self.width_steps() * STEP_WORDS * PANEL,
            SIDE * self.columns().max(self.width_steps() * STEP_WORDS),
            keys * PANEL,
            2 * steps_of(self.keys) * STEP_WORDS * PANEL,
            self.columns() * PANEL,
            self.keys.max(2 * self.value_width),
        ]
    }

    /// Words of scratch per member.
    pub(super) fn total(self) -> usize {
        self.parts().iter().sum()
    }
}

/// A member's tiles and scratch.
pub(super) struct Tiled<'a> {
    attention: &'a Attention<'a>,
    tiles: Configured,
    sizes: TiledSizes,
    /// [key][pair of E]
    keys: &'a mut [u32],
    /// [column][pair of keys]
    values: &'a mut [u32],
    /// [pair of E][PANEL]
    queries: &'a mut [u32],
    /// SIDE rows of pairs of E, or of pairs or results of all columns.
    rows: &'a mut [u32],
    /// [key][PANEL]
    scores: &'a mut [f32],
    /// [pair of keys][PANEL], the large parts of probabilities, then the small ones
    weights: &'a mut [u32],
    /// [column][PANEL queries]
    sums: &'a mut [f32],
    /// A row of T, or two of Ev.
    lines: &'a mut [f32],
}

impl<'a> Tiled<'a> {
    /// # Safety
    /// As [`Configured::new`].
    pub(super) unsafe fn new(
        attention: &'a Attention<'a>,
        sizes: TiledSizes,
        mut rest: &'a mut [f32],
    ) -> Self {
        let mut take = |len| rest.split_off_mut(..len).unwrap_or_default();
        let [keys, values, queries, rows, scores, weights, sums, lines] = sizes.parts().map(&mut take);
        Self {
            attention,
            // SAFETY: the caller's promise.
            tiles: unsafe { Configured::new(SIDE) },
            sizes,
            keys: bytemuck::cast_slice_mut(keys),
            values: bytemuck::cast_slice_mut(values),
            queries: bytemuck::cast_slice_mut(queries),
            rows: bytemuck::cast_slice_mut(rows),
            scores,
            weights: bytemuck::cast_slice_mut(weights),
            sums,
            lines,
        }
    }

    /// K of a head as rows of pairs. Rows past the last key are left as they are: their scores are not looked at.
    fn load_keys(&mut self, kv_head: usize, valid: usize) {
        let Attention { kernels, k, .. } = self.attention;
        let (words, pitch) = (self.sizes.width_steps() * STEP_WORDS, self.sizes.key_pitch());
        for (key, row) in self.keys.chunks_exact_mut(pitch).take(valid).enumerate() {
            let from = kv_head * self.sizes.keys + key;
            // SAFETY: a row of k.
            unsafe { k.load_bf16(kernels, from, bytemuck::cast_slice_mut(&mut row[..words])) };
        }
    }

    /// V of a head transposed, 0 from the last key to the end of its step.
    fn load_values(&mut self, kv_head: usize, valid: usize) {
        let Attention { kernels, v, .. } = self.attention;
        let (width, columns, pitch) =
            (self.sizes.value_width, self.sizes.columns(), self.sizes.value_pitch());
        let (even, odd) = self.lines.split_at_mut(width);
        let odd = &mut odd[..width];
        for step in 0..steps_of(valid) {
            let first = 2 * STEP_WORDS * step;
            for (pair, row) in self.rows.chunks_exact_mut(columns).take(STEP_WORDS).enumerate() {
                for (key, line) in
                    [first + 2 * pair, first + 2 * pair + 1].into_iter().zip([&mut *even, &mut *odd])
                {
                    if key < valid {
                        // SAFETY: a row of v.
                        unsafe { v.load(kernels, kv_head * self.sizes.keys + key, 0, line) };
                    } else {
                        line.fill(0.0);
                    }
                }
                // SAFETY: a level with AMX has AVX-512.
                unsafe { pair_up(even, odd, &mut row[..width]) };
            }
            for column in (0..columns).step_by(SIDE) {
                // SAFETY: SIDE rows of `columns` words, and as many columns of `pitch` words of which a step is written.
                unsafe {
                    let to = self.values.as_mut_ptr().add(column * pitch + step * STEP_WORDS);
                    transpose(self.rows.as_ptr().add(column), columns, to, pitch);
                }
            }
        }
    }

    /// `count` queries from row `first` on, transposed; 0 in the place of those that are missing.
    fn load_queries(&mut self, first: usize, count: usize) {
        let Attention { kernels, q, .. } = self.attention;
        let words = self.sizes.width_steps() * STEP_WORDS;
        for half in [0, SIDE] {
            for (i, row) in self.rows.chunks_exact_mut(words).take(SIDE).enumerate() {
                if half + i < count {
                    let from = first + half + i;
                    // SAFETY: a row of q.
                    unsafe { q.load_bf16(kernels, from, bytemuck::cast_slice_mut(row)) };
                } else {
                    row.fill(0);
                }
            }
            for word in (0..words).step_by(SIDE) {
                // SAFETY: SIDE rows of `words` words, and as many rows of PANEL words of which a half is written.
                unsafe {
                    let to = self.queries.as_mut_ptr().add(word * PANEL + half);
                    transpose(self.rows.as_ptr().add(word), words, to, PANEL);
                }
            }
        }
    }

    /// Finishes `sums` of `count` queries and stores them from row `first` on.
    fn store(&mut self, first: usize, count: usize, totals: &[f32; PANEL]) {
        let Attention { kernels, out, .. } = self.attention;
        let columns = self.sizes.columns();
        let inverse = totals.map(|total| if total == 0.0 { 0.0 } else { 1.0 / total });
        // SAFETY: a level with AMX has AVX-512.
        unsafe { scale_columns(self.sums, &inverse) };
        for half in [0, SIDE] {
            for column in (0..columns).step_by(SIDE) {
                // SAFETY: SIDE rows of PANEL floats of which a half is read, and as many rows of `columns` words.
                unsafe {
                    let from = self.sums.as_ptr().add(column * PANEL + half).cast();
                    transpose(from, PANEL, self.rows.as_mut_ptr().add(column), columns);
                }
            }
            let here = count.saturating_sub(half).min(SIDE);
            for (i, row) in self.rows.chunks_exact(columns).take(here).enumerate() {
                let row: &[f32] = bytemuck::cast_slice(&row[..self.sizes.value_width]);
                // SAFETY: each job has its own rows of out.
                unsafe { out.store(kernels, first + half + i, 0, row) };
            }
        }
    }
}

impl Form for Tiled<'_> {
    fn load(&mut self, kv_head: usize, valid: usize) {
        self.load_keys(kv_head, valid);
        self.load_values(kv_head, valid);
    }

    fn attend(&mut self, job: Job) {
        let attention = self.attention;
        let seen = attention.seen(&job);
        self.load_queries(job.first_row, job.count);
        let (steps, pitch) = (self.sizes.width_steps(), self.sizes.key_pitch());
        product(
            &self.tiles,
            seen.div_ceil(SIDE),
            [self.keys, self.queries],
            pitch,
            steps,
            self.scores,
            false,
        );
        let scores = &mut self.scores[..seen * PANEL];
        let scale = attention.apply_masks(&job, scores, self.lines);
        let mut totals = [0f32; PANEL];
        (attention.kernels.exp_columns)(scores, scale, &mut totals);

        // A step may go on past `seen`, where V is 0 or of a key that is not seen: probabilities are 0 there.
        let (used, steps) = (seen.div_ceil(2) * PANEL, steps_of(seen));
        let (large, rest) = self.weights.split_at_mut(steps * STEP_WORDS * PANEL);
        let small = &mut rest[..large.len()];
        // SAFETY: a level with AMX has AVX-512.
        unsafe { split_columns(scores, large, small) };
        large[used..].fill(0);
        small[used..].fill(0);
        if steps == 0 {
            self.sums.fill(0.0);
        }
        let (tiles, pitch) = (self.sizes.columns() / SIDE, self.sizes.value_pitch());
        for (weights, accumulate) in [(large, false), (small, true)] {
            product(&self.tiles, tiles, [self.values, weights], pitch, steps, self.sums, accumulate);
        }
        self.store(job.first_row, job.count, &totals);
    }
}

/// `c = a b`, or `c += a b`, for `rows` tiles of rows of A, `lda` words apart. Nothing is done for no steps.
fn product(
    tiles: &Configured,
    rows: usize,
    [a, b]: [&[u32]; 2],
    lda: usize,
    steps: usize,
    c: &mut [f32],
    accumulate: bool,
) {
    if steps == 0 {
        return;
    }
    let (a, b) = (&a[..rows * SIDE * lda], &b[..steps * STEP_WORDS * PANEL]);
    for (pair, c) in c[..rows * TILE_FLOATS].chunks_mut(2 * TILE_FLOATS).enumerate() {
        let (a, b, c, two) =
            (a[2 * pair * SIDE * lda..].as_ptr(), b.as_ptr(), c.as_mut_ptr(), c.len() > TILE_FLOATS);
        // SAFETY: A has one tile of rows from here or two, as has C, each row at least `steps` steps as the callers lay them
        // out; B has `steps`.
        unsafe {
            multiply(tiles, &Block { a, lda, two, b, steps, c, accumulate }, Beside::Nothing);
        }
    }
}
