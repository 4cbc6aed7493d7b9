//! Single-precision logarithm, sine and cosine after Cephes (Moshier), with the operation order and the fused
//! multiply-adds of torch's AVX2 build (`avx_mathfun.h`), so that results are the same bits.
//!
//! Only the range that Box–Muller needs is right: logarithms of normal positive numbers up to 1, angles in [0, 8192).

/// `1/√2`: mantissas below are doubled, so that the polynomial sees [1/√2, √2).
const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// `ln 2` in two parts, of which the high one has few bits: `e * LN2_HIGH` is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// `(ln(1 + x) - x + x²/2) / x³` on [1/√2 - 1, √2 - 1], highest power first.
const LOG_POLYNOMIAL: [f32; 9] = [
    7.037_683_6e-2,
    -1.151_461e-1,
    1.167_699_84e-1,
    -1.242_014_1e-1,
    1.424_932_3e-1,
    -1.666_805_8e-1,
    2.000_071_4e-1,
    -2.499_999_4e-1,
    3.333_333e-1,
];

/// `4/π`: turns an angle into octants.
const FOUR_OVER_PI: f32 = 1.273_239_5;
/// `-π/4` in three parts of few bits each, for an exact reduction.
const MINUS_QUARTER_PI: [f32; 3] = [-0.785_156_25, -2.418_756_5e-4, -3.774_895e-8];
/// Sine's and cosine's polynomials in `x²` on [-π/4, π/4], highest power first.
const SIN_POLYNOMIAL: [f32; 3] = [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1];
const COS_POLYNOMIAL: [f32; 3] = [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2];

/// Mantissa bits of an f32 and its exponent's bias.
const MANTISSA_BITS: u32 = 23;
const MANTISSA_MASK: u32 = (1 << MANTISSA_BITS) - 1;
const EXPONENT_BIAS: i32 = 127;

fn horner(coefficients: &[f32], x: f32) -> f32 {
    coefficients.iter().copied().reduce(|sum, next| sum.mul_add(x, next)).unwrap_or(0.0)
}

/// Natural logarithm of a normal positive number.
pub(super) fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let mantissa = f32::from_bits((bits & MANTISSA_MASK) | 0.5_f32.to_bits());
    let exponent = ((bits >> MANTISSA_BITS) as i32 - EXPONENT_BIAS) as f32 + 1.0;
    let (e, x) = if mantissa < SQRT_HALF {
        (exponent - 1.0, (mantissa - 1.0) + mantissa)
    } else {
        (exponent, mantissa - 1.0)
    };
    let z = x * x;
    let cubic = horner(&LOG_POLYNOMIAL, x) * x;
    let low = (-z).mul_add(0.5, cubic.mul_add(z, e * LN2_LOW));
    e.mul_add(LN2_HIGH, x + low)
}

/// Sine and cosine of a non-negative angle in radians.
pub(super) fn sin_cos(angle: f32) -> (f32, f32) {
    // the octant, rounded up to an even number: the remainder is in [-π/4, π/4]
    let octant = ((angle * FOUR_OVER_PI) as i32 + 1) & !1;
    let quarter_turns = octant as f32;
    let x = MINUS_QUARTER_PI.iter().fold(angle, |x, part| quarter_turns.mul_add(*part, x));
    let z = x * x;
    let sin = (horner(&SIN_POLYNOMIAL, z) * z).mul_add(x, x);
    let cos = (horner(&COS_POLYNOMIAL, z) * z).mul_add(z, -(z * 0.5)) + 1.0;
    let (sin, cos) = if octant & 2 == 0 { (sin, cos) } else { (cos, sin) };
    let sin_negative = octant & 4 != 0;
    let cos_negative = (octant - 2) & 4 == 0;
    (if sin_negative { -sin } else { sin }, if cos_negative { -cos } else { cos })
}

#[cfg(test)]
mod tests {
    use super::{ln, sin_cos};

    #[test]
    fn functions_are_within_two_ulps_of_the_exact_ones() {
        for i in 1..=1_u32 << 16 {
            let u = i as f32 / 65_536.0;
            let exact = f64::from(u).ln();
            assert!((f64::from(ln(u)) - exact).abs() <= exact.abs().max(1e-3) * 2.4e-7, "ln({u})");
            let angle = u * std::f32::consts::TAU;
            let (sin, cos) = sin_cos(angle);
            assert!((f64::from(sin) - f64::from(angle).sin()).abs() <= 2.4e-7, "sin({angle})");
            assert!((f64::from(cos) - f64::from(angle).cos()).abs() <= 2.4e-7, "cos({angle})");
        }
    }
}
