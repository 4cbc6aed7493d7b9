//! The order in which a member goes through its part of a weight, and what of it is asked for ahead.

use crate::engine::share;
use crate::kernels::amx::STEP_WORDS;
use crate::pack::WeightFormat;
use std::ops::Range;

/// Most steps of a block of K.
const BLOCK_STEPS: usize = 48;
/// Most steps of a chunk: 2 KiB of words each, in L1.
const CHUNK_STEPS: usize = 18;
/// Of an expanded chunk; shorter where few rows leave little time to expand the next one.
const EXPANDED_STEPS: usize = 16;
const EXPANDED_STEPS_FEW_ROWS: usize = 8;
const FEW_ROWS: usize = 64;
/// How far ahead the weight is asked for, in bytes.
const DISTANCE: usize = 48 * 1024;

/// The order in which a member goes through its part of the weight.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) steps: usize,
    /// Blocks of K, and chunks of a block.
    pub(super) blocks: usize,
    pub(super) chunks: usize,
    /// Most steps of a chunk.
    pub(super) chunk_steps: usize,
    /// Chunks from one that is multiplied (expanded, for block floats) to the one that is asked for.
    pub(super) distance: usize,
    pub(super) panels: Range<usize>,
}

/// A panel's words over some steps of K.
#[derive(Clone)]
pub(super) struct Chunk {
    pub(super) panel: usize,
    pub(super) steps: Range<usize>,
}

impl Order {
    pub(super) fn new(steps: usize, rows: usize, format: WeightFormat) -> Self {
        let most = match format {
            WeightFormat::F32 | WeightFormat::Bf16 => CHUNK_STEPS,
            _ if rows <= FEW_ROWS => EXPANDED_STEPS_FEW_ROWS,
            _ => EXPANDED_STEPS,
        };
        let blocks = steps.div_ceil(BLOCK_STEPS);
        let block_steps = steps.div_ceil(blocks);
        let chunks = block_steps.div_ceil(most);
        let chunk_steps = block_steps.div_ceil(chunks);
        let distance = DISTANCE.div_ceil(chunk_steps * STEP_WORDS * format.row_bytes());
        Self { steps, blocks, chunks, chunk_steps, distance, panels: 0..0 }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks * self.panels.len() * self.chunks
    }

    pub(super) fn chunk(&self, i: usize) -> Option<Chunk> {
        if i >= self.len() {
            return None;
        }
        let (chunk, i) = (i % self.chunks, i / self.chunks);
        let (panel, block) = (i % self.panels.len(), i / self.panels.len());
        let block = share(self.steps, block, self.blocks);
        let steps = share(block.len(), chunk, self.chunks);
        Some(Chunk {
            panel: self.panels.start + panel,
            steps: block.start + steps.start..block.start + steps.end,
        })
    }
}

/// Rows of pairs of some steps, one for each word of K.
pub(super) fn rows_of(steps: &Range<usize>) -> Range<usize> {
    steps.start * STEP_WORDS..steps.end * STEP_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_panel_comes_once_and_in_ascending_k() {
        for format in WeightFormat::ALL {
            for steps in [1, 2, 17, 18, 19, 36, 48, 49, 97, 256] {
                for rows in [1, 300] {
                    let order = Order { panels: 3..7, ..Order::new(steps, rows, format) };
                    let mut next = [0; 7];
                    for chunk in (0..).map_while(|i| order.chunk(i)) {
                        assert_eq!(chunk.steps.start, next[chunk.panel], "{steps} steps");
                        assert!((1..=order.chunk_steps).contains(&chunk.steps.len()), "{steps} steps");
                        next[chunk.panel] = chunk.steps.end;
                    }
                    assert_eq!(next, [0, 0, 0, steps, steps, steps, steps]);
                }
            }
        }
    }
}
