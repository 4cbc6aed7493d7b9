//! Single-precision arc sine as torch computes it on x86 CPUs: an odd polynomial below 1/2, and above it π/2 − 2·asin(√((1 − |x|)/2)) with
//! the root kept in two parts, in f32 with fused steps. One result in 20 is not the correctly rounded one, and upstream's Euler angles have
//! those last bits.
//!
//! The polynomial is the one of the vector arc sine in glibc's libmvec; the rest was found by comparing results. Torch has two answers,
//! because its math library uses fused steps on some processors only. This is the fused one, which all golden results agree with: of 2
//! million random values in ±1 it differs from that library's in 245 (AVX2) or 320 (AVX-512), all above 1/2, and from the unfused one in 8,197.

use std::f32::consts::FRAC_PI_2;

/// Below this the polynomial is used as it is.
const POLYNOMIAL_LIMIT: f32 = 0.5;
/// (asin(x)/x − 1)/x² on ±1/2, lowest power of x² first.
const COEFFICIENTS: [f32; 5] = [0.166_667_92, 0.074_943_68, 0.045_557_693, 0.023_823_937, 0.042_690_303];
/// π/2 minus its f32 value.
const FRAC_PI_2_LOW: f32 = -4.371_139e-8;

/// asin(x)/x − 1, given x².
fn polynomial(square: f32) -> f32 {
    let [c0, c1, c2, c3, c4] = COEFFICIENTS;
    let upper = c4.mul_add(square, c3).mul_add(square * square, c2.mul_add(square, c1));
    upper.mul_add(square, c0) * square
}

/// Arc sine; NaN outside `[-1, 1]`.
pub(super) fn asin(x: f32) -> f32 {
    let magnitude = x.abs();
    let angle = if magnitude < POLYNOMIAL_LIMIT {
        polynomial(magnitude * magnitude) * magnitude + magnitude
    } else if magnitude == 1.0 {
        FRAC_PI_2
    } else if magnitude < 1.0 {
        let square = 0.5 - 0.5 * magnitude;
        let root = 2.0 * f64::from(square).sqrt();
        let root_high = root as f32;
        let root_low = (root - f64::from(root_high)) as f32;
        let high = FRAC_PI_2 - root_high;
        let low = ((FRAC_PI_2 - high) - root_high) + (FRAC_PI_2_LOW - root_low);
        high + polynomial(square).mul_add(-(root_high + root_low), low)
    } else {
        f32::NAN
    };
    angle.copysign(x)
}
