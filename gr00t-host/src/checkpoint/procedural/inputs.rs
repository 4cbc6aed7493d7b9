//! Procedural model inputs: arrays of `(seed, name)` that need no file.

use super::Stream;

/// Uniform draws summed for one normal one (Irwin-Hall: variance 1 at twelve).
const DRAWS: u64 = 12;

/// `len` values uniform in `[lo, hi)`, computed in f64 and rounded to f32.
pub fn uniform_array(seed: u64, name: &str, len: usize, lo: f64, hi: f64) -> Vec<f32> {
    let stream = Stream::new(seed, name);
    (0..len as u64).map(|i| (lo + (hi - lo) * fraction(stream, i)) as f32).collect()
}

/// `len` values of mean 0 and variance 1, nearly normal, within ±6: the initial noise.
pub fn gaussian_array(seed: u64, name: &str, len: usize) -> Vec<f32> {
    let stream = Stream::new(seed, name);
    (0..len as u64)
        .map(|i| {
            // Every term is a multiple of 2^-24, so the sum is exact in any order.
            let sum: f64 = (0..DRAWS).map(|j| fraction(stream, DRAWS * i + j)).sum();
            (sum - DRAWS as f64 / 2.0) as f32
        })
        .collect()
}

/// `len` token ids uniform in `0..bound`.
pub fn id_array(seed: u64, name: &str, len: usize, bound: u32) -> Vec<u32> {
    let stream = Stream::new(seed, name);
    (0..len as u64).map(|i| (fraction(stream, i) * f64::from(bound)).floor() as u32).collect()
}

/// Element `index` in `[0, 1)`, exact.
fn fraction(stream: Stream, index: u64) -> f64 {
    (f64::from(stream.unit(index)) + 1.0) * 0.5
}
