//! bfloat8_b and bfloat4_b to pairs of bf16 with AVX-512: 11 instructions for 32 weights. The compiler does not find the
//! vector form of the loops in `expand`, and at few rows the expansion is what a matmul waits for.

use super::PANEL;
use super::expand::{BFP4_SCALES, BFP8_SCALES};
use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm256_loadu_si256, _mm512_castps_si512, _mm512_cvtepi32_ps,
    _mm512_cvtepu8_epi32, _mm512_cvtepu16_epi32, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_slli_epi32, _mm512_srai_epi32, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi32,
};

/// Pairs in a register.
const LANES: usize = 16;

pub(super) fn bfp8_to_bf16(pairs: &[u16], exponents: &[[u8; 2]], out: &mut [u32]) {
    // SAFETY: used by tables of AVX-512 levels only, which are handed out where the CPU has it.
    unsafe { bfp8(pairs, exponents, out) }
}

pub(super) fn bfp4_to_bf16(pairs: &[u8], exponents: &[[u8; 2]], out: &mut [u32]) {
    // SAFETY: as above.
    unsafe { bfp4(pairs, exponents, out) }
}

#[target_feature(enable = "avx512f")]
fn bfp8(pairs: &[u16], exponents: &[[u8; 2]], out: &mut [u32]) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(PANEL));
    for ((pairs, e), out) in rows {
        let groups = pairs.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0);
        for (group, (pairs, out)) in groups.enumerate() {
            let (s0, s1) = (BFP8_SCALES[usize::from(e[0][group])], BFP8_SCALES[usize::from(e[1][group])]);
            // SAFETY: reads 16 u16.
            let words = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(pairs.as_ptr().cast()) });
            let even = _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words));
            let odd = _mm512_srai_epi32::<24>(_mm512_slli_epi32::<16>(words));
            store(even, odd, s0, s1, out);
        }
    }
}

#[target_feature(enable = "avx512f")]
fn bfp4(pairs: &[u8], exponents: &[[u8; 2]], out: &mut [u32]) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(PANEL));
    for ((pairs, e), out) in rows {
        let groups = pairs.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0);
        for (group, (pairs, out)) in groups.enumerate() {
            let (s0, s1) = (BFP4_SCALES[usize::from(e[0][group])], BFP4_SCALES[usize::from(e[1][group])]);
            // SAFETY: reads 16 u8.
            let words = _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(pairs.as_ptr().cast()) });
            let even = _mm512_srai_epi32::<28>(_mm512_slli_epi32::<28>(words));
            let odd = _mm512_srai_epi32::<28>(_mm512_slli_epi32::<24>(words));
            store(even, odd, s0, s1, out);
        }
    }
}

/// Integers times scales, as bf16: the even ones in the low halves of the words.
#[target_feature(enable = "avx512f")]
#[inline]
fn store(even: __m512i, odd: __m512i, even_scale: f32, odd_scale: f32, out: &mut [u32; LANES]) {
    /// a | b & c
    const A_OR_B_AND_C: i32 = 0xf8;
    let even = _mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(even), _mm512_set1_ps(even_scale)));
    let odd = _mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(odd), _mm512_set1_ps(odd_scale)));
    let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
    let words = _mm512_ternarylogic_epi32::<A_OR_B_AND_C>(_mm512_srli_epi32::<16>(even), odd, upper);
    // SAFETY: writes 16 u32.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), words) };
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
        for exponent in 0..255 {
            let exponents = [[exponent, exponent ^ 1]; 256 / PANEL * 2];
            let (mut plain, mut vector) = (vec![0; 256], vec![0; 256]);
            expand::bfp8_to_bf16(&pairs, &exponents, &mut plain);
            bfp8_to_bf16(&pairs, &exponents, &mut vector);
            assert_eq!(plain, vector, "bfloat8_b under {exponent}");
            expand::bfp4_to_bf16(&bytes, &exponents, &mut plain);
            bfp4_to_bf16(&bytes, &exponents, &mut vector);
            assert_eq!(plain, vector, "bfloat4_b under {exponent}");
        }
    }
}
