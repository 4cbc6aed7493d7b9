//! Made-up operands, and how far results are from each other.

use half::bf16;

/// `len` values in -0.5 .. 0.5 that bfloat16 holds exactly, so that all data types multiply the same numbers.
pub(crate) fn values(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        // Knuth's MMIX generator; the upper bits are the good ones
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bf16::from_f32((state >> 40) as f32 / (1 << 24) as f32 - 0.5).to_f32()
    };
    (0..len).map(|_| next()).collect()
}

/// The same values as bfloat16.
pub(crate) fn halves(values: &[f32]) -> Vec<bf16> {
    values.iter().copied().map(bf16::from_f32).collect()
}

/// Root of the squared differences over that of the squared wanted values.
///
/// # Panics
/// If the lengths differ.
pub fn relative_rms(got: &[f32], wanted: &[f64]) -> f64 {
    assert_eq!(got.len(), wanted.len());
    let squares: f64 = got.iter().zip(wanted).map(|(g, w)| (f64::from(*g) - w).powi(2)).sum();
    (squares / wanted.iter().map(|w| w * w).sum::<f64>()).sqrt()
}
