//! Expansion of packed weights with AVX-512: 11 instructions for 32 block float weights to pairs of bf16. The compiler
//! does not find the vector form of the loops in `expand`, and at few rows the expansion is what a matmul waits for.

use super::PANEL;
use super::expand::{BFP4_SCALES, BFP8_SCALES, Expand};
use std::arch::x86_64::{
    __m512, __m512i, _mm_loadu_si128, _mm256_loadu_si256, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32, _mm512_cvtepu16_epi32, _mm512_loadu_si512,
    _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_slli_epi32, _mm512_srai_epi32,
    _mm512_srli_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_ternarylogic_epi32,
};

/// Pairs in a register.
const LANES: usize = 16;

/// The expansions of AVX-512 levels. Tables of those levels are handed out only where the CPU has AVX-512 F, which is all
/// that the unsafe calls need.
pub(super) const EXPAND: Expand = Expand {
    // SAFETY: see `EXPAND`.
    bf16_to_f32: |pairs, out| unsafe { bf16_f32(pairs, out) },
    // SAFETY: see `EXPAND`.
    bfp8_to_f32: |pairs, e, out| unsafe { bfp8(pairs, e, out, F32) },
    // SAFETY: see `EXPAND`.
    bfp4_to_f32: |pairs, e, out| unsafe { bfp4(pairs, e, out, F32) },
    // SAFETY: see `EXPAND`.
    bfp8_to_bf16: |pairs, e, out| unsafe { bfp8(pairs, e, out, Bf16) },
    // SAFETY: see `EXPAND`.
    bfp4_to_bf16: |pairs, e, out| unsafe { bfp4(pairs, e, out, Bf16) },
};

/// What a pair of k becomes.
trait Row: Copy {
    type Word;
    /// Words of a panel's pair of k.
    const WORDS: usize;
    /// Stores group `group` of a pair of k.
    fn store(self, even: __m512, odd: __m512, group: usize, out: &mut [Self::Word]);
}

/// Two rows of f32.
#[derive(Clone, Copy)]
struct F32;

impl Row for F32 {
    type Word = f32;
    const WORDS: usize = 2 * PANEL;

    #[inline(always)]
    fn store(self, even: __m512, odd: __m512, group: usize, out: &mut [f32]) {
        let (first, second) = out.split_at_mut(PANEL);
        for (row, values) in [(first, even), (second, odd)] {
            let row = &mut row[group * LANES..(group + 1) * LANES];
            // SAFETY: writes the 16 f32 of `row`; called from functions that have AVX-512 only.
            unsafe { _mm512_storeu_ps(row.as_mut_ptr(), values) };
        }
    }
}

/// A row of pairs of bf16, the even k in the low halves.
#[derive(Clone, Copy)]
struct Bf16;

impl Row for Bf16 {
    type Word = u32;
    const WORDS: usize = PANEL;

    #[inline(always)]
    fn store(self, even: __m512, odd: __m512, group: usize, out: &mut [u32]) {
        /// a | b & c
        const A_OR_B_AND_C: i32 = 0xf8;
        let row = &mut out[group * LANES..(group + 1) * LANES];
        // SAFETY: writes the 16 u32 of `row`; called from functions that have AVX-512 only.
        unsafe {
            let (even, odd) = (_mm512_castps_si512(even), _mm512_castps_si512(odd));
            let upper = _mm512_set1_epi32(UPPER);
            let words = _mm512_ternarylogic_epi32::<A_OR_B_AND_C>(_mm512_srli_epi32::<16>(even), odd, upper);
            _mm512_storeu_si512(row.as_mut_ptr().cast(), words);
        }
    }
}

/// The upper half of a word.
const UPPER: i32 = 0xffff_0000_u32 as i32;

#[target_feature(enable = "avx512f")]
fn bf16_f32(pairs: &[u32], out: &mut [f32]) {
    for (pairs, out) in pairs.chunks_exact(PANEL).zip(out.chunks_exact_mut(2 * PANEL)) {
        for (group, pairs) in pairs.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: reads 16 u32.
            let words = unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) };
            let even = _mm512_slli_epi32::<16>(words);
            let odd = _mm512_and_si512(words, _mm512_set1_epi32(UPPER));
            F32.store(_mm512_castsi512_ps(even), _mm512_castsi512_ps(odd), group, out);
        }
    }
}

#[target_feature(enable = "avx512f")]
fn bfp8<R: Row>(pairs: &[u16], exponents: &[[u8; 2]], out: &mut [R::Word], row: R) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(R::WORDS));
    for ((pairs, e), out) in rows {
        for (group, pairs) in pairs.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: reads 16 u16.
            let words = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(pairs.as_ptr().cast()) });
            let even = _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words));
            let odd = _mm512_srai_epi32::<24>(_mm512_slli_epi32::<16>(words));
            let [s0, s1] = [e[0], e[1]].map(|e| BFP8_SCALES[usize::from(e[group])]);
            row.store(scaled(even, s0), scaled(odd, s1), group, out);
        }
    }
}

#[target_feature(enable = "avx512f")]
fn bfp4<R: Row>(pairs: &[u8], exponents: &[[u8; 2]], out: &mut [R::Word], row: R) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(R::WORDS));
    for ((pairs, e), out) in rows {
        for (group, pairs) in pairs.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: reads 16 u8.
            let words = _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(pairs.as_ptr().cast()) });
            let even = _mm512_srai_epi32::<28>(_mm512_slli_epi32::<28>(words));
            let odd = _mm512_srai_epi32::<28>(_mm512_slli_epi32::<24>(words));
            let [s0, s1] = [e[0], e[1]].map(|e| BFP4_SCALES[usize::from(e[group])]);
            row.store(scaled(even, s0), scaled(odd, s1), group, out);
        }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn scaled(integers: __m512i, scale: f32) -> __m512 {
    _mm512_mul_ps(_mm512_cvtepi32_ps(integers), _mm512_set1_ps(scale))
}

#[cfg(test)]
mod tests {
    use super::super::expand;
    use super::*;
    use crate::Isa;

    #[test]
    fn expansions_equal_the_plain_ones_for_every_byte_and_exponent() {
        if !Isa::Avx512.is_available() {
            println!("skipped: this CPU has no AVX-512");
            return;
        }
        // Every byte as both halves of a pair, under every exponent that finite weights have.
        let bytes: Vec<u8> = (0..=255).collect();
        let pairs: Vec<u16> =
            bytes.iter().map(|b| u16::from(*b) << 8 | u16::from(b.rotate_left(3))).collect();
        let words: Vec<u32> =
            pairs.iter().map(|p| u32::from(*p) << 16 | u32::from(p.rotate_left(5))).collect();
        let (mut plain, mut vector) = (vec![0f32; 512], vec![0f32; 512]);
        expand::bf16_to_f32(&words, &mut plain);
        (EXPAND.bf16_to_f32)(&words, &mut vector);
        assert_eq!(bits(&plain), bits(&vector));
        for exponent in 0..255 {
            let e = [[exponent, exponent ^ 1]; 256 / PANEL * 2];
            expand::bfp8_to_f32(&pairs, &e, &mut plain);
            (EXPAND.bfp8_to_f32)(&pairs, &e, &mut vector);
            assert_eq!(plain, vector, "bfloat8_b under {exponent}");
            expand::bfp4_to_f32(&bytes, &e, &mut plain);
            (EXPAND.bfp4_to_f32)(&bytes, &e, &mut vector);
            assert_eq!(plain, vector, "bfloat4_b under {exponent}");
            let (mut plain, mut vector) = (vec![0u32; 256], vec![0u32; 256]);
            expand::bfp8_to_bf16(&pairs, &e, &mut plain);
            (EXPAND.bfp8_to_bf16)(&pairs, &e, &mut vector);
            assert_eq!(plain, vector, "bfloat8_b under {exponent}");
            expand::bfp4_to_bf16(&bytes, &e, &mut plain);
            (EXPAND.bfp4_to_bf16)(&bytes, &e, &mut vector);
            assert_eq!(plain, vector, "bfloat4_b under {exponent}");
        }
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|v| v.to_bits()).collect()
    }
}
