//! The matmul tile with AVX-512: 12 rows by 32 columns of sums in 24 of the 32 registers.
//!
//! Two forms: fp32 FMA, and `vdpbf16ps` on pairs of bf16, which does two products an instruction. The second is at full
//! rate on AMD (Zen 4 and later: twice the first) and at half rate or less on Intel, where fp32 is the faster way.
//! Both add in fp32; `vdpbf16ps` treats subnormal numbers as 0.
//!
//! Binds: the FMA ports; per word of K 24 multiply-adds, 2 loads of B and 12 broadcasts of A. `examples/gemm_peak.rs` measures
//! how near `linear` comes to the peak of each form.

use super::{PANEL, Tile, TileKernel};
use std::arch::x86_64::{
    __cpuid, __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

const ROWS: usize = 12;
const WIDTH: usize = 16;

pub(super) const TILE: TileKernel = TileKernel { max_rows: ROWS, run };
pub(super) const TILE_BF16: TileKernel = TileKernel { max_rows: ROWS, run: run_bf16 };

/// Has the CPU `vdpbf16ps` at the rate of an FMA? A matter of the maker, so that a machine always gives the same bytes.
pub(super) fn bf16_dot_is_fast() -> bool {
    // "AuthenticAMD", as CPUID leaf 0 spells it in EBX, EDX, ECX.
    const AMD: [u32; 3] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
    let maker = __cpuid(0);
    is_x86_feature_detected!("avx512bf16") && [maker.ebx, maker.edx, maker.ecx] == AMD
}

macro_rules! by_rows {
    ($tile:ident, $rows:ident) => {
        match $tile.rows {
            1 => $rows::<1>($tile),
            2 => $rows::<2>($tile),
            3 => $rows::<3>($tile),
            4 => $rows::<4>($tile),
            5 => $rows::<5>($tile),
            6 => $rows::<6>($tile),
            7 => $rows::<7>($tile),
            8 => $rows::<8>($tile),
            9 => $rows::<9>($tile),
            10 => $rows::<10>($tile),
            11 => $rows::<11>($tile),
            _ => $rows::<12>($tile),
        }
    };
}

/// # Safety
/// As [`TileKernel::run`].
unsafe fn run(tile: Tile) {
    // SAFETY: the caller's promise, passed on; `rows` is at most `ROWS`.
    unsafe { by_rows!(tile, rows_f32) }
}

/// # Safety
/// As [`TileKernel::run`]; words are pairs of bf16.
unsafe fn run_bf16(tile: Tile) {
    // SAFETY: the caller's promise, passed on; `rows` is at most `ROWS`.
    unsafe { by_rows!(tile, rows_bf16) }
}

/// # Safety
/// As [`TileKernel::run`], with `tile.rows == R`.
#[target_feature(enable = "avx512f")]
unsafe fn rows_f32<const R: usize>(tile: Tile) {
    let mut sums = [[_mm512_setzero_ps(); 2]; R];
    let (mut a, mut b) = (tile.a.cast::<f32>(), tile.b.cast::<f32>());
    for _ in 0..tile.words {
        // SAFETY: a row of `b` and R words of `a` per word of K, as promised; the pointers go one step past the last
        // row at most, by wrapping arithmetic.
        unsafe {
            let (b0, b1) = (_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(WIDTH)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = _mm512_set1_ps(*a.add(r));
                sums[0] = _mm512_fmadd_ps(x, b0, sums[0]);
                sums[1] = _mm512_fmadd_ps(x, b1, sums[1]);
            }
        }
        a = a.wrapping_add(tile.lda);
        b = b.wrapping_add(PANEL);
    }
    // SAFETY: passed on.
    unsafe { store(&sums, tile) }
}

/// # Safety
/// As [`TileKernel::run`], with `tile.rows == R`; the CPU has AVX512-BF16.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn rows_bf16<const R: usize>(tile: Tile) {
    let mut sums = [[_mm512_setzero_ps(); 2]; R];
    let (mut a, mut b) = (tile.a.cast::<i32>(), tile.b);
    for _ in 0..tile.words {
        // SAFETY: as in `rows_f32`.
        unsafe {
            let (b0, b1) =
                (pairs(_mm512_loadu_si512(b.cast())), pairs(_mm512_loadu_si512(b.add(WIDTH).cast())));
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = pairs(_mm512_set1_epi32(*a.add(r)));
                sums[0] = _mm512_dpbf16_ps(sums[0], x, b0);
                sums[1] = _mm512_dpbf16_ps(sums[1], x, b1);
            }
        }
        a = a.wrapping_add(tile.lda);
        b = b.wrapping_add(PANEL);
    }
    // SAFETY: passed on.
    unsafe { store(&sums, tile) }
}

#[inline(always)]
fn pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes of plain data.
    unsafe { std::mem::transmute(bits) }
}

/// # Safety
/// As [`TileKernel::run`], with `tile.rows == R`.
#[target_feature(enable = "avx512f")]
unsafe fn store<const R: usize>(sums: &[[__m512; 2]; R], tile: Tile) {
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: row `r < R` of C is the caller's to write, PANEL floats long.
        unsafe {
            let c = tile.c.add(r * tile.ldc);
            for (half, sum) in sums.iter().enumerate() {
                let c = c.add(half * WIDTH);
                _mm512_storeu_ps(
                    c,
                    if tile.accumulate { _mm512_add_ps(_mm512_loadu_ps(c), *sum) } else { *sum },
                );
            }
        }
    }
}
