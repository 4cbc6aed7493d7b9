//! What attention does with AVX-512 between its products: words between rows and columns, 16 by 16 in registers; pairs of bf16
//! from two rows; rows scaled column by column.

use super::super::PANEL;
use super::super::math::bf16_bits;
use super::SIDE;
use std::arch::x86_64::{
    __m512i, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_setzero_si512, _mm512_shuffle_i32x4,
    _mm512_storeu_ps, _mm512_storeu_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

/// `to[c * to_pitch + r] = from[r * from_pitch + c]`, for r and c below [`SIDE`].
///
/// # Safety
/// Both reach these words, `to` exclusively; the CPU has AVX-512.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn transpose(from: *const u32, from_pitch: usize, to: *mut u32, to_pitch: usize) {
    let mut rows = [_mm512_setzero_si512(); SIDE];
    for (r, row) in rows.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *row = unsafe { _mm512_loadu_si512(from.add(r * from_pitch).cast()) };
    }
    // Within lanes of four words: 4x4 blocks, of which `rows[4 i + j]` then has column j of rows 4 i .. 4 i + 4 in each lane.
    for four in rows.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = *four;
        let (low, high) = (
            [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)],
            [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)],
        );
        *four = [
            _mm512_unpacklo_epi64(low[0], low[1]),
            _mm512_unpackhi_epi64(low[0], low[1]),
            _mm512_unpacklo_epi64(high[0], high[1]),
            _mm512_unpackhi_epi64(high[0], high[1]),
        ];
    }
    // Then the lanes, which are a 4x4 block for each j.
    for j in 0..4 {
        let columns = transpose_lanes([rows[j], rows[4 + j], rows[8 + j], rows[12 + j]]);
        for (lane, column) in columns.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_si512(to.add((4 * lane + j) * to_pitch).cast(), column) };
        }
    }
}

/// Lane j of row i becomes lane i of row j.
#[target_feature(enable = "avx512f")]
fn transpose_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    /// Lanes 0 and 2 of both operands, and lanes 1 and 3.
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (even, odd) = (
        [_mm512_shuffle_i32x4::<EVEN>(a, b), _mm512_shuffle_i32x4::<EVEN>(c, d)],
        [_mm512_shuffle_i32x4::<ODD>(a, b), _mm512_shuffle_i32x4::<ODD>(c, d)],
    );
    [
        _mm512_shuffle_i32x4::<EVEN>(even[0], even[1]),
        _mm512_shuffle_i32x4::<EVEN>(odd[0], odd[1]),
        _mm512_shuffle_i32x4::<ODD>(even[0], even[1]),
        _mm512_shuffle_i32x4::<ODD>(odd[0], odd[1]),
    ]
}

/// Two rows of f32 that are bf16 values to pairs, the first in the low halves.
///
/// # Safety
/// The CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) unsafe fn pair_up(even: &[f32], odd: &[f32], out: &mut [u32]) {
    for ((word, even), odd) in out.iter_mut().zip(even).zip(odd) {
        *word = pair(even.to_bits(), odd.to_bits());
    }
}

/// Rows of f32 ([row][PANEL]) as sums of two bf16, which hold 16 bits of them: the larger parts and the smaller ones, each
/// as pairs down the columns. An odd last row has 0 beside it.
///
/// # Safety
/// The CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) unsafe fn split_columns(rows: &[f32], large: &mut [u32], small: &mut [u32]) {
    let round = |v: f32| f32::from_bits(u32::from(bf16_bits(v)) << 16);
    let (large, small) = (large.as_chunks_mut::<PANEL>().0, small.as_chunks_mut::<PANEL>().0);
    for ((rows, large), small) in rows.as_chunks::<PANEL>().0.chunks(2).zip(large).zip(small) {
        let (even, odd) = (rows[0], rows.get(1).copied().unwrap_or_default());
        for i in 0..PANEL {
            let (even_large, odd_large) = (round(even[i]), round(odd[i]));
            large[i] = pair(even_large.to_bits(), odd_large.to_bits());
            small[i] = pair(round(even[i] - even_large).to_bits(), round(odd[i] - odd_large).to_bits());
        }
    }
}

/// The upper halves of two f32.
#[inline(always)]
fn pair(even: u32, odd: u32) -> u32 {
    even >> 16 | odd & 0xffff_0000
}

/// Multiplies each row of `x` ([..][PANEL]) with `factors`.
///
/// # Safety
/// The CPU has AVX-512.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn scale_columns(x: &mut [f32], factors: &[f32; PANEL]) {
    for row in x.as_chunks_mut::<PANEL>().0 {
        for half in [0, SIDE] {
            // SAFETY: both have PANEL floats.
            unsafe {
                let (x, factors) = (row.as_mut_ptr().add(half), factors.as_ptr().add(half));
                _mm512_storeu_ps(x, _mm512_mul_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(factors)));
            }
        }
    }
}
