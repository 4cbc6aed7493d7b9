//! Packed weights to the words that a matmul tile multiplies. Every step is exact: 7 (3) magnitude bits fit f32 and bf16.
//!
//! Order of packed weights (see `pack`): per pair of k, for each of the panel's 32 columns the two weights together.

use super::PANEL;

/// The expansions of one level. `e` holds, per k, the exponents of the panel's two groups of 16 columns.
#[derive(Clone, Copy)]
pub(crate) struct Expand {
    /// Pairs of bf16 to f32 rows [k][PANEL].
    pub bf16_to_f32: fn(&[u32], &mut [f32]),
    pub bfp8_to_f32: fn(&[u16], &[[u8; 2]], &mut [f32]),
    pub bfp4_to_f32: fn(&[u8], &[[u8; 2]], &mut [f32]),
    /// To pairs of bf16 [k / 2][PANEL].
    pub bfp8_to_bf16: fn(&[u16], &[[u8; 2]], &mut [u32]),
    pub bfp4_to_bf16: fn(&[u8], &[[u8; 2]], &mut [u32]),
}

/// Columns that share an exponent.
const GROUP: usize = 16;
/// A magnitude of 7 bits has its point after the first bit: value = magnitude * 2^(exponent - 127 - 6).
const BFP8_BIAS: i32 = 127 + 6;
const BFP4_BIAS: i32 = 127 + 2;

/// 2^(exponent - bias), which may be subnormal but never 0.
const fn scale(exponent: u8, bias: i32) -> f32 {
    let power = exponent as i32 - bias;
    if power < -126 {
        f32::from_bits(1 << (power + 149))
    } else {
        f32::from_bits(((power + 127) as u32) << 23)
    }
}

const fn scales(bias: i32) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut exponent = 0;
    while exponent < 256 {
        table[exponent] = scale(exponent as u8, bias);
        exponent += 1;
    }
    table
}

/// Scales of a bfloat8_b group by its exponent.
pub(crate) static BFP8_SCALES: [f32; 256] = scales(BFP8_BIAS);
/// Scales of a bfloat4_b group by its exponent.
pub(crate) static BFP4_SCALES: [f32; 256] = scales(BFP4_BIAS);

#[inline(always)]
pub(crate) fn bf16_to_f32(pairs: &[u32], out: &mut [f32]) {
    for (pairs, rows) in pairs.chunks_exact(PANEL).zip(out.chunks_exact_mut(2 * PANEL)) {
        let (even, odd) = rows.split_at_mut(PANEL);
        for ((p, e), o) in pairs.iter().zip(even).zip(odd) {
            *e = f32::from_bits(p << 16);
            *o = f32::from_bits(p & 0xffff_0000);
        }
    }
}

/// Two's complement bytes, k even in the low one.
#[inline(always)]
fn bfp8_pair(pair: u16) -> (f32, f32) {
    (f32::from(pair as i8), f32::from((pair >> 8) as i8))
}

/// Two's complement nibbles, k even in the low one.
#[inline(always)]
fn bfp4_pair(pair: u8) -> (f32, f32) {
    (f32::from((pair << 4) as i8 >> 4), f32::from(pair as i8 >> 4))
}

#[inline(always)]
fn to_f32<T: Copy>(
    pairs: &[T],
    exponents: &[[u8; 2]],
    scales: &[f32; 256],
    out: &mut [f32],
    split: impl Fn(T) -> (f32, f32),
) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(2 * PANEL));
    for ((pairs, e), rows) in rows {
        let (even, odd) = rows.split_at_mut(PANEL);
        for group in 0..PANEL / GROUP {
            let (s0, s1) = (scales[usize::from(e[0][group])], scales[usize::from(e[1][group])]);
            let part = group * GROUP..(group + 1) * GROUP;
            let out = even[part.clone()].iter_mut().zip(&mut odd[part.clone()]);
            for (p, (even, odd)) in pairs[part].iter().zip(out) {
                let (a, b) = split(*p);
                (*even, *odd) = (a * s0, b * s1);
            }
        }
    }
}

#[inline(always)]
fn to_bf16<T: Copy>(
    pairs: &[T],
    exponents: &[[u8; 2]],
    scales: &[f32; 256],
    out: &mut [u32],
    split: impl Fn(T) -> (f32, f32),
) {
    let rows = pairs.chunks_exact(PANEL).zip(exponents.chunks_exact(2)).zip(out.chunks_exact_mut(PANEL));
    for ((pairs, e), out) in rows {
        for group in 0..PANEL / GROUP {
            let (s0, s1) = (scales[usize::from(e[0][group])], scales[usize::from(e[1][group])]);
            let part = group * GROUP..(group + 1) * GROUP;
            for (p, out) in pairs[part.clone()].iter().zip(&mut out[part]) {
                let (a, b) = split(*p);
                *out = (a * s0).to_bits() >> 16 | (b * s1).to_bits() & 0xffff_0000;
            }
        }
    }
}

#[inline(always)]
pub(crate) fn bfp8_to_f32(pairs: &[u16], exponents: &[[u8; 2]], out: &mut [f32]) {
    to_f32(pairs, exponents, &BFP8_SCALES, out, bfp8_pair);
}

#[inline(always)]
pub(crate) fn bfp4_to_f32(pairs: &[u8], exponents: &[[u8; 2]], out: &mut [f32]) {
    to_f32(pairs, exponents, &BFP4_SCALES, out, bfp4_pair);
}

#[inline(always)]
pub(crate) fn bfp8_to_bf16(pairs: &[u16], exponents: &[[u8; 2]], out: &mut [u32]) {
    to_bf16(pairs, exponents, &BFP8_SCALES, out, bfp8_pair);
}

#[inline(always)]
pub(crate) fn bfp4_to_bf16(pairs: &[u8], exponents: &[[u8; 2]], out: &mut [u32]) {
    to_bf16(pairs, exponents, &BFP4_SCALES, out, bfp4_pair);
}
