//! Operands: deterministic numbers, and what they are after rounding to a data type.

use half::bf16;

use crate::dtype::DataType;

/// Numbers that look normal (sum of four uniforms, unit variance), the same for the same seed everywhere.
pub(super) fn normal(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..len).map(|_| (uniform() + uniform() + uniform() + uniform()) * 3f32.sqrt()).collect()
}

/// [`normal`] times `scale`.
pub(super) fn scaled(seed: u64, len: usize, scale: f32) -> Vec<f32> {
    normal(seed, len).into_iter().map(|v| v * scale).collect()
}

/// Values as the data type holds them, rows of `width`.
pub(super) fn rounded(values: &[f32], dtype: DataType, width: usize) -> Vec<f64> {
    let format = match dtype {
        DataType::Bfloat16 => return values.iter().map(|&v| bf16::from_f32(v).to_f64()).collect(),
        DataType::Bfloat8B => tt_soft::block_float::BlockFormat::Bfp8B,
        DataType::Bfloat4B => tt_soft::block_float::BlockFormat::Bfp4B,
        _ => return wide(values),
    };
    let rows = values.len() / width.max(1);
    let packed = tt_soft::block_float::pack(format, values, rows, width);
    let unpacked = packed.and_then(|bytes| tt_soft::block_float::unpack(format, &bytes, rows, width));
    unpacked.map_or_else(|_| vec![f64::NAN; values.len()], |v| wide(&v))
}

/// Values as f64.
pub(super) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

/// The transpose of `rows` rows.
pub(super) fn transposed<T: Copy>(values: &[T], rows: usize) -> Vec<T> {
    let columns = values.len() / rows.max(1);
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}
