//! The matmul tile in plain Rust: 4 rows by 8 columns of sums, which the compiler keeps in SSE or NEON registers.

use super::{PANEL, Tile, TileKernel};

const ROWS: usize = 4;
const COLUMNS: usize = 8;

pub(super) const TILE: TileKernel = TileKernel { max_rows: ROWS, run };

/// # Safety
/// As [`TileKernel::run`].
unsafe fn run(tile: Tile) {
    // SAFETY: the caller's promise, passed on; `rows` is at most `ROWS`.
    unsafe {
        match tile.rows {
            1 => rows::<1>(tile),
            2 => rows::<2>(tile),
            3 => rows::<3>(tile),
            _ => rows::<4>(tile),
        }
    }
}

/// # Safety
/// As [`TileKernel::run`], with `tile.rows == R`.
unsafe fn rows<const R: usize>(tile: Tile) {
    for column in (0..PANEL).step_by(COLUMNS) {
        let mut sums = [[0f32; COLUMNS]; R];
        for w in 0..tile.words {
            // SAFETY: `w < words` and `column + COLUMNS <= PANEL`, inside what the caller promises of `a` and `b`.
            let (a, b) = unsafe {
                (
                    tile.a.add(w * tile.lda).cast::<[f32; R]>(),
                    tile.b.add(w * PANEL + column).cast::<[f32; COLUMNS]>(),
                )
            };
            // SAFETY: as above; both are plain floats and aligned as floats.
            let (a, b) = unsafe { (&*a, &*b) };
            for (sums, x) in sums.iter_mut().zip(a) {
                for (sum, y) in sums.iter_mut().zip(b) {
                    *sum += x * y;
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            // SAFETY: row `r < R` of C is the caller's to write, PANEL floats long.
            let c = unsafe { &mut *tile.c.add(r * tile.ldc + column).cast::<[f32; COLUMNS]>() };
            for (c, sum) in c.iter_mut().zip(sums) {
                *c = if tile.accumulate { *c + sum } else { *sum };
            }
        }
    }
}
