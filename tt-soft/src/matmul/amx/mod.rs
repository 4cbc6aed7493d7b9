//! How a product with a packed weight is cut into blocks for AMX.
//!
//! ```text
//! for parts of the rows (MAX_ROWS)
//!   all members: x to rows of bf16, an odd number of cache lines apart, in shared scratch
//!   member (i, j) of a grid, tiles configured once: pairs of row tiles i, panels j
//!     for block of K (BLOCK_STEPS)                x of the block stays in L2
//!       for panel (32 columns)
//!         for chunk of K (at most 18 steps)       its words stay in L1; the weight further on is asked for
//!           for pair of row tiles                 2x2 tiles of sums, from and to [tile][16][32] f32
//! ```
//! A chunk of a block float weight is expanded while the one before it is multiplied, into the other of two buffers. Sums of
//! all panels are kept where K has several blocks. An element's sum runs through K in order, a step of 32 at a time,
//! however the product is cut.
//!
//! Binds: fetching the weight from memory, then loading tiles (see `kernels::amx`). The sizes are those that were best on
//! another program of this shape; what this one reaches has not been measured yet.

mod order;

use super::epilogue::RawEpilogue;
use super::grid::Grid;
use crate::engine::{Engine, Session, SharedPtr, share};
use crate::error::Result;
use crate::kernels::amx::{
    Beside, Block, Configured, SIDE, STEP_WORDS, TILE_FLOATS, multiply, pitch_of, steps_of,
};
use crate::kernels::{Kernels, LINE, PANEL, ask_for};
use crate::pack::{PackedWeight, WeightFormat};
use crate::view::{RawView, RawViewMut};
use order::{Chunk, Order, rows_of};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::ops::Range;

/// Most rows at a time: their x of a block of K takes 1.2 MiB of L2.
const MAX_ROWS: usize = 384;
/// Most sums kept at a time, in floats; few in tests, so that panels come in groups there.
const MAX_SUMS: usize = if cfg!(test) { 1 << 13 } else { 1 << 20 };
/// Words of a step of a panel.
const STEP: usize = STEP_WORDS * PANEL;

/// x and the weight, and how they are multiplied.
struct Product<'a> {
    kernels: &'static Kernels,
    x: RawView,
    weight: &'a PackedWeight,
    /// Steps of K.
    steps: usize,
    /// Words from one row of `packed_x` to the next.
    pitch: usize,
    packed_x: SharedPtr<u32>,
}

/// A part of the rows, in tiles of equal height; the last may reach past the end.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    count: usize,
    tiles: usize,
    height: usize,
}

impl Rows {
    fn new(rows: &Range<usize>) -> Self {
        let count = rows.len();
        let tiles = count.div_ceil(SIDE);
        Self { first: rows.start, count, tiles, height: count.div_ceil(tiles) }
    }

    fn pairs(self) -> usize {
        self.tiles.div_ceil(2)
    }

    /// Rows of a tile, counted within the part.
    fn of_tile(self, tile: usize) -> Range<usize> {
        tile * self.height..self.count.min((tile + 1) * self.height)
    }
}

/// Multiplies and stores; arguments are checked by the caller, and the weight is not float32.
pub(super) fn run(
    engine: &Engine,
    x: &RawView,
    weight: &PackedWeight,
    epilogue: &RawEpilogue<'_>,
    out: RawViewMut,
) -> Result<()> {
    let rows = x.geometry.rows();
    let parts = rows.div_ceil(MAX_ROWS);
    let steps = steps_of(weight.k());
    let pitch = pitch_of(steps);
    let mut session = engine.session();
    let most_rows = rows.div_ceil(parts).next_multiple_of(SIDE);
    let packed_x = session.shared(most_rows * pitch);
    let product = Product { kernels: engine.kernels(), x: *x, weight, steps, pitch, packed_x };
    for part in 0..parts {
        product.run_rows(&mut session, Rows::new(&share(rows, part, parts)), epilogue, &out)?;
    }
    Ok(())
}

impl Product<'_> {
    fn run_rows(
        &self,
        session: &mut Session<'_>,
        rows: Rows,
        epilogue: &RawEpilogue<'_>,
        out: &RawViewMut,
    ) -> Result<()> {
        let members = session.members_for(rows.count * self.weight.k());
        session.run_members(members, 0, &|member, _| {
            for row in share(rows.count, member, members) {
                self.pack_row(rows.first + row, row);
            }
        })?;
        let grid = Grid::new(session, rows.count, rows.pairs(), self.weight);
        let order = Order::new(self.steps, rows.count, self.weight.format());
        let [most_pairs, most_panels] = grid.most();
        let panel_sums = 2 * most_pairs * TILE_FLOATS;
        let group = if order.blocks == 1 { 1 } else { most_panels.min(MAX_SUMS / panel_sums).max(1) };
        let buffer = if self.weight.format() == WeightFormat::Bf16 { 0 } else { order.chunk_steps * STEP };
        let floats = group * panel_sums + 2 * buffer;
        session.run_members(grid.members(), floats, &|member, scratch| {
            let mine = grid.panels_of(member);
            let pairs = grid.blocks_of(member);
            let (sums, buffers) = scratch.split_at_mut(group * panel_sums);
            let (even, odd) = buffers.split_at_mut(buffer);
            // SAFETY: this table is handed out only where AMX is available; members run on threads of their own.
            let tiles = unsafe { Configured::new(rows.height) };
            // With one block of K sums last for a panel only.
            let each = if order.blocks == 1 { mine.len().max(1) } else { group };
            for first in mine.clone().step_by(each) {
                let order = Order { panels: first..mine.end.min(first + each), ..order };
                let task =
                    Task { product: self, tiles: &tiles, order, rows, pairs: pairs.clone(), panel_sums };
                task.run(sums, [even, odd], &|sums, rows, panel| {
                    // SAFETY: the grid gives each member its own rows and columns.
                    unsafe { epilogue.apply(self.kernels, sums, rows, panel * PANEL, out) };
                });
            }
        })
    }

    /// Row `from` of x to bf16, zero beyond K, as row `to` of the scratch.
    fn pack_row(&self, from: usize, to: usize) {
        let used = self.steps * STEP_WORDS;
        // SAFETY: the scratch has room for every row of a part; each has one writer.
        let words = unsafe { std::slice::from_raw_parts_mut(self.packed_x.get().add(to * self.pitch), used) };
        // SAFETY: the row is inside x, K elements long.
        unsafe { self.x.load_bf16(self.kernels, from, bytemuck::cast_slice_mut(words)) };
    }
}

/// One member's rows and panels.
struct Task<'a> {
    product: &'a Product<'a>,
    tiles: &'a Configured,
    order: Order,
    rows: Rows,
    pairs: Range<usize>,
    /// Floats of a panel's sums.
    panel_sums: usize,
}

/// Finishes sums ([row][PANEL]) of rows of `out` and of a panel.
type Finish<'a> = &'a dyn Fn(&mut [f32], Range<usize>, usize);

impl Task<'_> {
    fn run(&self, sums: &mut [f32], [mut now, mut later]: [&mut [f32]; 2], finish: Finish<'_>) {
        let weight = self.product.weight;
        // What no chunk asks for: the first ones, of block floats one more.
        let first = self.order.distance + usize::from(weight.format() != WeightFormat::Bf16);
        for chunk in (0..first).map_while(|i| self.order.chunk(i)) {
            let (data, exponents) = weight.packed_rows(chunk.panel, rows_of(&chunk.steps));
            ask_for(data);
            ask_for(exponents);
        }
        if let Some(first) = self.order.chunk(0) {
            self.expand(&first, 0, now);
        }
        for i in 0..self.order.len() {
            let Some(chunk) = self.order.chunk(i) else { break };
            let kept = if self.order.blocks == 1 { 0 } else { chunk.panel - self.order.panels.start };
            let sums = &mut sums[kept * self.panel_sums..][..self.panel_sums];
            let words = match weight.format() {
                WeightFormat::Bf16 => {
                    weight.packed_rows(chunk.panel, rows_of(&chunk.steps)).0.as_ptr().cast()
                }
                _ => now.as_ptr().cast::<u32>(),
            };
            let next = self.order.chunk(i + 1);
            let mut beside = BesideChunk::new(self, &chunk, i, later);
            for (at, pair) in self.pairs.clone().enumerate() {
                let sums = &mut sums[2 * at * TILE_FLOATS..];
                self.multiply(&chunk, pair, words, sums, beside.next(chunk.steps.len()));
                if chunk.steps.end == self.order.steps {
                    self.finish(pair, chunk.panel, sums, finish);
                }
            }
            let expanded = beside.done;
            if let Some(next) = &next {
                self.expand(next, expanded, later);
            }
            std::mem::swap(&mut now, &mut later);
        }
    }

    fn multiply(&self, chunk: &Chunk, pair: usize, words: *const u32, sums: &mut [f32], beside: Beside) {
        let accumulate = chunk.steps.start > 0;
        if accumulate {
            // The sums of the next pair, which are in L2.
            for line in
                sums.chunks(LINE / 4).skip(2 * TILE_FLOATS * 4 / LINE).take(2 * TILE_FLOATS * 4 / LINE)
            {
                // SAFETY: a hint.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
            }
        }
        let Product { pitch, packed_x, .. } = *self.product;
        let two = 2 * pair + 1 < self.rows.tiles;
        let sums = &mut sums[..if two { 2 } else { 1 } * TILE_FLOATS];
        let first_row = 2 * pair * self.rows.height;
        // SAFETY: x in scratch has `tiles * height` rows (at most the next multiple of `SIDE`) of `steps` steps; the
        // words are the chunk's, in the weight or in a buffer; sums are two tiles, or one where there is one. What is
        // expanded is inside the weight and the other buffer, see `BesideChunk`.
        unsafe {
            let a = packed_x.get().add(first_row * pitch + chunk.steps.start * STEP_WORDS);
            let block = Block {
                a,
                lda: pitch,
                two,
                b: words,
                steps: chunk.steps.len(),
                c: sums.as_mut_ptr(),
                accumulate,
            };
            multiply(self.tiles, &block, beside);
        }
    }

    fn finish(&self, pair: usize, panel: usize, sums: &mut [f32], finish: Finish<'_>) {
        for (tile, sums) in (2 * pair..self.rows.tiles.min(2 * pair + 2)).zip(sums.chunks_mut(TILE_FLOATS)) {
            let rows = self.rows.of_tile(tile);
            let sums = &mut sums[..rows.len() * PANEL];
            finish(sums, self.rows.first + rows.start..self.rows.first + rows.end, panel);
        }
    }

    /// Expands a chunk's rows from `done` on.
    fn expand(&self, chunk: &Chunk, done: usize, buffer: &mut [f32]) {
        let Product { kernels, weight, .. } = self.product;
        let rows = rows_of(&chunk.steps);
        if weight.format() == WeightFormat::Bf16 || done >= rows.len() {
            return;
        }
        let to = &mut buffer[done * PANEL..rows.len() * PANEL];
        weight.bf16_words(kernels, chunk.panel, rows.start + done, rows.len() - done, to);
    }
}

/// What is done beside the products of a chunk, shared out over its pairs of row tiles: asking for the weight further on
/// and expanding the next chunk of bfloat8_b. (bfloat4_b is expanded between chunks.)
struct BesideChunk {
    kind: Kind,
    /// Lines or rows of pairs per step.
    each: usize,
    /// Lines or rows done, and how many there are.
    done: usize,
    total: usize,
}

enum Kind {
    Nothing,
    Prefetch(*const u8),
    Expand { from: *const u8, exponents: *const u8, to: *mut u32, ahead: *const u8 },
}

impl BesideChunk {
    fn new(task: &Task<'_>, chunk: &Chunk, i: usize, buffer: &mut [f32]) -> Self {
        let weight = task.product.weight;
        let format = weight.format();
        let far = i + task.order.distance;
        let data = |chunk: Chunk| weight.packed_rows(chunk.panel, rows_of(&chunk.steps));
        let chunk_data = |i: usize| task.order.chunk(i).map(data);
        let (kind, total, least, most) = match (format, chunk_data(i + 1)) {
            (WeightFormat::Bf16, _) => match chunk_data(far) {
                Some((data, _)) => (Kind::Prefetch(data.as_ptr()), data.len() / LINE, 4, 32),
                None => (Kind::Nothing, 0, 1, 1),
            },
            (WeightFormat::Bfp8B, Some((from, exponents))) => {
                let (ahead, exponents_ahead) = chunk_data(far + 1).unwrap_or((from, &[]));
                ask_for(exponents_ahead);
                let (to, rows) = (buffer.as_mut_ptr().cast(), from.len() / LINE);
                let (from, exponents, ahead) = (from.as_ptr(), exponents.as_ptr(), ahead.as_ptr());
                (Kind::Expand { from, exponents, to, ahead }, rows, 2, 16)
            }
            (_, next) => {
                // A row of pairs of bfloat4_b is half a line: few enough to be asked for at once.
                if let Some((data, exponents)) = next.and(chunk_data(far + 1)) {
                    ask_for(data);
                    ask_for(exponents);
                }
                (Kind::Nothing, 0, 1, 1)
            }
        };
        let steps = chunk.steps.len() * task.pairs.len();
        let each = total.div_ceil(steps.max(1)).next_power_of_two().clamp(least, most);
        Self { kind, each, done: 0, total }
    }

    /// The share of the next pair, of so many steps.
    fn next(&mut self, steps: usize) -> Beside {
        let (done, count) = (self.done, self.each * steps);
        match self.kind {
            Kind::Prefetch(from) if done < self.total => {
                self.done += count;
                Beside::Prefetch { from: from.wrapping_add(done * LINE), lines: self.each }
            }
            // Only whole shares; `Task::expand` does the rest.
            Kind::Expand { from, exponents, to, ahead } if done + count <= self.total => {
                self.done += count;
                Beside::Expand {
                    rows: self.each,
                    from: from.wrapping_add(done * LINE),
                    exponents: exponents.wrapping_add(done * 4),
                    to: to.wrapping_add(done * PANEL),
                    ahead: ahead.wrapping_add(done * LINE),
                }
            }
            _ => Beside::Nothing,
        }
    }
}
