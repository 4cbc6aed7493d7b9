//! How a product with a packed weight is cut into blocks.
//!
//! ```text
//! for chunks of rows (bounds the scratch)
//!   all members: x to blocks of up to `max_rows` rows, [word][row], in shared scratch
//!   member (i, j) of a grid: row blocks i, panels j
//!     for panel (32 columns)                       sums [row][32] in L2
//!       for run of K (RUN words)                   the panel's run, expanded or in place, 32 KiB
//!         for row block                            sums in registers; a part of the next run is asked for
//! ```
//! Binds: the FMA ports where there are many rows; reading the weight where there are few.

use super::epilogue::RawEpilogue;
use super::grid::Grid;
use crate::engine::{Engine, Session, SharedPtr, share};
use crate::error::Result;
use crate::kernels::math::bf16_bits;
use crate::kernels::{Kernels, LINE, PANEL, Tile, TileKernel, ask_for};
use crate::pack::{PackedWeight, WeightFormat};
use crate::rows::PIECE;
use crate::view::{RawView, RawViewMut};
use std::ops::Range;

/// Most rows at a time: bounds the scratch that x takes.
const MAX_ROWS: usize = 1024;
/// Words of K summed at a time (even): a panel's run takes 32 KiB.
pub(super) const RUN: usize = 256;
/// Largest `max_rows` of a tile kernel.
const BLOCK_ROWS: usize = 12;

/// x and the weight, and how they are multiplied.
struct Product<'a> {
    kernels: &'static Kernels,
    tile: TileKernel,
    /// Words hold two bf16.
    paired: bool,
    x: RawView,
    weight: &'a PackedWeight,
    /// Words of K.
    words: usize,
    /// Blocks of rows, [block][word][row].
    packed_x: SharedPtr<u32>,
}

/// Multiplies and stores; arguments are checked by the caller.
pub(super) fn run(
    engine: &Engine,
    x: &RawView,
    weight: &PackedWeight,
    epilogue: &RawEpilogue<'_>,
    out: RawViewMut,
) -> Result<()> {
    let kernels = engine.kernels();
    let (tile, paired) = match kernels.tile_bf16 {
        Some(tile) if weight.format() != WeightFormat::F32 => (tile, true),
        _ => (kernels.tile_f32, false),
    };
    let words = if paired { weight.k().div_ceil(2) } else { weight.k() };
    let rows = x.geometry.rows();
    let mut session = engine.session();
    let packed_x = session.shared(rows.min(MAX_ROWS) * words);
    let product = Product { kernels, tile, paired, x: *x, weight, words, packed_x };
    for start in (0..rows).step_by(MAX_ROWS) {
        product.run_rows(&mut session, start..rows.min(start + MAX_ROWS), epilogue, &out)?;
    }
    Ok(())
}

impl Product<'_> {
    fn run_rows(
        &self,
        session: &mut Session<'_>,
        rows: Range<usize>,
        epilogue: &RawEpilogue<'_>,
        out: &RawViewMut,
    ) -> Result<()> {
        let count = rows.len();
        let blocks = count.div_ceil(self.tile.max_rows);
        let members = session.members_for(count * self.weight.k());
        session.run_members(members, 0, &|member, _| {
            for block in share(blocks, member, members) {
                self.pack_block(rows.start, share(count, block, blocks));
            }
        })?;
        let grid = Grid::new(session, count, blocks, self.weight);
        let [most_blocks, _] = grid.most();
        let rows_per_member = most_blocks * self.tile.max_rows;
        let floats = (rows_per_member + RUN) * PANEL;
        session.run_members(grid.members(), floats, &|member, scratch| {
            let blocks_here = grid.blocks_of(member);
            let (sums, run) = scratch.split_at_mut(rows_per_member * PANEL);
            for panel in grid.panels_of(member) {
                let covered = self.multiply(panel, count, blocks, blocks_here.clone(), sums, run);
                let rows = rows.start + covered.start..rows.start + covered.end;
                let sums = &mut sums[..covered.len() * PANEL];
                // SAFETY: the grid gives each member its own rows and columns.
                unsafe { epilogue.apply(self.kernels, sums, rows, panel * PANEL, out) };
            }
        })
    }

    /// Converts the rows `first + rows` of x to a block.
    fn pack_block(&self, first: usize, rows: Range<usize>) {
        let k = self.x.geometry.shape[3];
        let height = rows.len();
        // SAFETY: blocks of one chunk of rows lie one after the other in the scratch; each has one writer.
        let block = unsafe {
            std::slice::from_raw_parts_mut(
                self.packed_x.get().add(rows.start * self.words),
                height * self.words,
            )
        };
        let mut buf = [0f32; BLOCK_ROWS * PIECE];
        for k0 in (0..k).step_by(PIECE) {
            let len = PIECE.min(k - k0);
            for (row, buf) in rows.clone().zip(buf.chunks_exact_mut(PIECE)) {
                buf[len..].fill(0.0);
                // SAFETY: row and columns are inside x.
                unsafe { self.x.load(self.kernels, first + row, k0, &mut buf[..len]) };
            }
            let round = self.weight.format() != WeightFormat::F32;
            if self.paired {
                let words = block[k0 / 2 * height..].chunks_exact_mut(height).take(len.div_ceil(2));
                for (w, words) in words.enumerate() {
                    for (word, row) in words.iter_mut().zip(buf.chunks_exact(PIECE)) {
                        *word = u32::from(bf16_bits(row[2 * w])) | u32::from(bf16_bits(row[2 * w + 1])) << 16;
                    }
                }
            } else {
                for (w, words) in block[k0 * height..].chunks_exact_mut(height).take(len).enumerate() {
                    for (word, row) in words.iter_mut().zip(buf.chunks_exact(PIECE)) {
                        *word = if round { u32::from(bf16_bits(row[w])) << 16 } else { row[w].to_bits() };
                    }
                }
            }
        }
    }

    /// Sums of one panel for some blocks of rows; returns the rows, counted within the chunk.
    fn multiply(
        &self,
        panel: usize,
        count: usize,
        blocks: usize,
        here: Range<usize>,
        sums: &mut [f32],
        run: &mut [f32],
    ) -> Range<usize> {
        let first_row = share(count, here.start, blocks).start;
        let mut end = first_row;
        for w0 in (0..self.words).step_by(RUN) {
            let words = RUN.min(self.words - w0);
            let b = if self.paired {
                self.weight.bf16_words(self.kernels, panel, w0, words, &mut run[..words * PANEL])
            } else {
                let padded = words.next_multiple_of(2);
                self.weight.f32_words(self.kernels, panel, w0, words, &mut run[..padded * PANEL])
            };
            let pairs = if self.paired { 1 } else { 2 };
            let ahead = self.weight.rows_from(panel, (w0 + words).div_ceil(pairs), RUN / pairs);
            for block in here.clone() {
                ask_for(part_of(ahead, block - here.start, here.len()));
                let rows = share(count, block, blocks);
                end = rows.end;
                let c = sums[(rows.start - first_row) * PANEL..(rows.end - first_row) * PANEL].as_mut_ptr();
                // SAFETY: the block of x starts at `rows.start * words` and has `rows.len()` words per word of K;
                // b has PANEL words per word of K; c has `rows.len()` rows of PANEL floats of this member's scratch.
                unsafe {
                    (self.tile.run)(Tile {
                        rows: rows.len(),
                        words,
                        a: self.packed_x.get().add(rows.start * self.words + w0 * rows.len()),
                        lda: rows.len(),
                        b,
                        c,
                        ldc: PANEL,
                        accumulate: w0 > 0,
                    });
                }
            }
        }
        first_row..end
    }
}

/// The bytes that one of `parts` askers asks for, in whole lines.
fn part_of(bytes: &[u8], part: usize, parts: usize) -> &[u8] {
    let lines = share(bytes.len().div_ceil(LINE), part, parts);
    let [start, end] = [lines.start, lines.end].map(|line| bytes.len().min(line * LINE));
    &bytes[start..end]
}
