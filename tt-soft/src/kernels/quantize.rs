//! Block float quantisation of a group, and of the rows of a weight's panel. Plain loops that the compiler vectorises.

use super::PANEL;

/// Elements that share an exponent.
const GROUP: usize = 16;
/// Groups across a panel.
const GROUPS: usize = PANEL / GROUP;
/// Bits of an f32's significand, the hidden one included.
const SIGNIFICAND: u32 = 24;

/// The shared exponent of a group, and its elements as signed magnitudes of `BITS` bits. See `block_float` for the rules.
#[inline(always)]
pub(crate) fn group<const BITS: u32>(values: &[f32; GROUP]) -> (u8, [i32; GROUP]) {
    let drop = SIGNIFICAND - BITS;
    let exponents = values.map(|v| (v.to_bits() >> 23) & 0xff);
    let mut shared = 0;
    for exponent in exponents {
        shared = if exponent > shared { exponent } else { shared };
    }
    let mut out = [0; GROUP];
    for (i, out) in out.iter_mut().enumerate() {
        let (bits, exponent) = (values[i].to_bits(), exponents[i]);
        let significand = (bits & 0x007f_ffff) | 0x0080_0000;
        let distance = shared - exponent;
        // Bits shifted out here do not take part in the rounding, as in tt-metal.
        let aligned = significand >> if distance > 31 { 31 } else { distance };
        let (kept, rest) = (aligned >> drop, aligned & ((1 << drop) - 1));
        let half = 1 << (drop - 1);
        let up = u32::from(rest > half) | (u32::from(rest == half) & kept & 1);
        let largest = (1 << BITS) - 1;
        let magnitude = if kept + up > largest { largest } else { kept + up };
        let magnitude = if exponent == 0 { 0 } else { magnitude as i32 };
        *out = if bits >> 31 == 0 { magnitude } else { -magnitude };
    }
    (shared as u8, out)
}

/// Groups of a row of a panel: the exponents, and what `put(column, element)` is given.
#[inline(always)]
fn row<const BITS: u32>(row: &[f32], exponents: &mut [u8], mut put: impl FnMut(usize, i32)) {
    for ((start, values), exponent) in row.as_chunks::<GROUP>().0.iter().enumerate().zip(exponents) {
        let (shared, elements) = group::<BITS>(values);
        *exponent = shared;
        for (i, element) in elements.into_iter().enumerate() {
            put(start * GROUP + i, element);
        }
    }
}

/// Rows [k][PANEL] to pairs of bytes and exponents [k][group].
#[inline(always)]
pub(crate) fn bfp8(rows: &[f32], pairs: &mut [u8], exponents: &mut [u8]) {
    let pairs = pairs.chunks_exact_mut(2 * PANEL);
    for ((rows, pairs), e) in
        rows.chunks_exact(2 * PANEL).zip(pairs).zip(exponents.chunks_exact_mut(2 * GROUPS))
    {
        let (mut even, mut odd) = ([0u8; PANEL], [0u8; PANEL]);
        row::<7>(&rows[..PANEL], &mut e[..GROUPS], |i, v| even[i] = v as u8);
        row::<7>(&rows[PANEL..], &mut e[GROUPS..], |i, v| odd[i] = v as u8);
        for (pair, (even, odd)) in pairs.chunks_exact_mut(2).zip(even.into_iter().zip(odd)) {
            (pair[0], pair[1]) = (even, odd);
        }
    }
}

/// Rows [k][PANEL] to pairs of nibbles and exponents [k][group].
#[inline(always)]
pub(crate) fn bfp4(rows: &[f32], pairs: &mut [u8], exponents: &mut [u8]) {
    let pairs = pairs.chunks_exact_mut(PANEL);
    for ((rows, pairs), e) in
        rows.chunks_exact(2 * PANEL).zip(pairs).zip(exponents.chunks_exact_mut(2 * GROUPS))
    {
        row::<3>(&rows[..PANEL], &mut e[..GROUPS], |i, v| pairs[i] = v as u8 & 0xf);
        row::<3>(&rows[PANEL..], &mut e[GROUPS..], |i, v| pairs[i] |= (v as u8 & 0xf) << 4);
    }
}
