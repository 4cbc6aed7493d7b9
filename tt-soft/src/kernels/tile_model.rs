//! A plain tile kernel with the contract of the AMX one (row-major A, words in steps of 16), so that what lies around that
//! kernel is tested on every CPU.

use super::{PANEL, Tile, TileKernel, WORD_STEP};

pub(super) const TILE: TileKernel = TileKernel { max_rows: 32, row_major_a: true, run };

/// # Safety
/// As [`TileKernel::run`].
unsafe fn run(tile: Tile) {
    assert!(tile.words > 0 && tile.words.is_multiple_of(WORD_STEP) && tile.ldc == PANEL);
    assert!((1..=32).contains(&tile.rows) && tile.lda >= tile.words);
    let halves = |word: u32| [f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000)];
    for r in 0..tile.rows {
        for n in 0..PANEL {
            let mut sum = 0.0;
            for w in 0..tile.words {
                // SAFETY: the caller's promise.
                let (a, b) = unsafe { (*tile.a.add(r * tile.lda + w), *tile.b.add(w * PANEL + n)) };
                let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
                sum += a0 * b0 + a1 * b1;
            }
            // SAFETY: the caller's promise.
            unsafe {
                let c = tile.c.add(r * tile.ldc + n);
                *c = if tile.accumulate { *c + sum } else { sum };
            }
        }
    }
}
