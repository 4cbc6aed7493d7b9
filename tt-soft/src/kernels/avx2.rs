//! The matmul tile with AVX2 and FMA: 6 rows by 16 columns of sums in 12 of the 16 registers, in two passes over a panel.
//!
//! Binds: the two FMA ports; per k 12 FMAs, 2 loads of B and 6 broadcasts of A. On Zen 4 `linear` reaches 76-85 % of the FMA
//! peak at 256-296 rows, 67-76 % at 49 rows (`examples/gemm_peak.rs`).

use super::{PANEL, Tile, TileKernel};
use std::arch::x86_64::{
    _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};

const ROWS: usize = 6;
const WIDTH: usize = 8;
const COLUMNS: usize = 2 * WIDTH;

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
            4 => rows::<4>(tile),
            5 => rows::<5>(tile),
            _ => rows::<6>(tile),
        }
    }
}

/// # Safety
/// As [`TileKernel::run`], with `tile.rows == R`.
#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const R: usize>(tile: Tile) {
    for column in (0..PANEL).step_by(COLUMNS) {
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        let mut a = tile.a.cast::<f32>();
        // SAFETY: `column < PANEL`, inside the first row of `b`.
        let mut b = unsafe { tile.b.cast::<f32>().add(column) };
        for _ in 0..tile.words {
            // SAFETY: one row of `b` (columns `column .. column + 16`) and R words of `a` per word of K, as promised;
            // the pointers go one step past the last row at most, by wrapping arithmetic.
            unsafe {
                let (b0, b1) = (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(WIDTH)));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = _mm256_set1_ps(*a.add(r));
                    sums[0] = _mm256_fmadd_ps(x, b0, sums[0]);
                    sums[1] = _mm256_fmadd_ps(x, b1, sums[1]);
                }
            }
            a = a.wrapping_add(tile.lda);
            b = b.wrapping_add(PANEL);
        }
        for (r, sums) in sums.iter().enumerate() {
            // SAFETY: row `r < R` of C is the caller's to write, PANEL floats long.
            unsafe {
                let c = tile.c.add(r * tile.ldc + column);
                for (half, sum) in sums.iter().enumerate() {
                    let c = c.add(half * WIDTH);
                    _mm256_storeu_ps(
                        c,
                        if tile.accumulate { _mm256_add_ps(_mm256_loadu_ps(c), *sum) } else { *sum },
                    );
                }
            }
        }
    }
}
