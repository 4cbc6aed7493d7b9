//! Scalar functions that the compiler can vectorise: no branches, no tables. `FUSED` says that the level has fused
//! multiply-add; without it `mul_add` would be a library call.
//!
//! Largest errors, measured against f64 by this module's tests, in units of the last place of f32:
//! `exp` and `exp2_of_negative` 2, `tanh` 3, `sigmoid` 4, `silu` 5 (where the result is a normal number). For x > 0
//! `gelu_tanh` is within 4 units and `gelu_erf` within 8; in the negative tail their relative error grows to 2^-15.

// Coefficients are written as their sources print them.
#![allow(clippy::excessive_precision)]

/// `a * b + c`, with one rounding where the level has it.
#[inline(always)]
pub(crate) fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Below this `exp` is 0, above the other it is infinite.
const EXP_LOW: f32 = -104.0;
const EXP_HIGH: f32 = 89.0;
/// Adding 1.5 * 2^23 leaves the integer nearest to a small number in the low bits of the sum.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has few bits, so that its products with small integers are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// e^x. Underflows to 0, overflows to infinity, keeps NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2; a degree 6 polynomial in r (the coefficients of Cephes' `expf`) times 2^n.
#[inline(always)]
pub(crate) fn exp<const FUSED: bool>(x: f32) -> f32 {
    let x = if x > EXP_HIGH { EXP_HIGH } else { x };
    let x = if x < EXP_LOW { EXP_LOW } else { x };
    let shifted = fma::<FUSED>(x, std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = fma::<FUSED>(-n, LN2_LOW, fma::<FUSED>(-n, LN2_HIGH, x));
    let p = fma::<FUSED>(1.987_569_1e-4, r, 1.398_199_9e-3);
    let p = fma::<FUSED>(p, r, 8.333_452e-3);
    let p = fma::<FUSED>(p, r, 4.166_579_6e-2);
    let p = fma::<FUSED>(p, r, 1.666_666_5e-1);
    let p = fma::<FUSED>(p, r, 0.5);
    let y = fma::<FUSED>(p, r * r, r) + 1.0;
    // 2^n in two factors: n goes from -150 to 128, beyond what one normal number holds.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32);
    let half = n >> 1;
    y * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// Below this [`exp2_of_negative`] is 0: 2^-127 as the exponent bits of a normal number are all 0.
const EXP2_LOW: f32 = -127.0;

/// 2^x for x <= 0, 0 from -126.5 down; keeps NaN.
///
/// x = n + f with |f| <= 1/2; a degree 6 polynomial in f (the coefficients of Cephes' `exp2f`) times 2^n.
#[inline(always)]
pub(crate) fn exp2_of_negative<const FUSED: bool>(x: f32) -> f32 {
    let x = if x < EXP2_LOW { EXP2_LOW } else { x };
    let shifted = x + ROUNDER;
    let f = x - (shifted - ROUNDER);
    let p = fma::<FUSED>(1.535_336_2e-4, f, 1.339_887_4e-3);
    let p = fma::<FUSED>(p, f, 9.618_437e-3);
    let p = fma::<FUSED>(p, f, 5.550_332_5e-2);
    let p = fma::<FUSED>(p, f, 2.402_264_8e-1);
    let p = fma::<FUSED>(p, f, 6.931_472e-1);
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32);
    fma::<FUSED>(p, f, 1.0) * power_of_two(n)
}

/// Hyperbolic tangent: a polynomial (Cephes' `tanhf`) below 0.625, `1 - 2 / (e^2|x| + 1)` above.
#[inline(always)]
pub(crate) fn tanh<const FUSED: bool>(x: f32) -> f32 {
    const POLYNOMIAL_BELOW: f32 = 0.625;
    let a = x.abs();
    let z = x * x;
    let p = fma::<FUSED>(-5.704_988_7e-3, z, 2.063_908_9e-2);
    let p = fma::<FUSED>(p, z, -5.373_971_6e-2);
    let p = fma::<FUSED>(p, z, 1.333_144_2e-1);
    let p = fma::<FUSED>(p, z, -3.333_328_2e-1);
    let small = fma::<FUSED>(p * z, x, x);
    let large = (1.0 - 2.0 / (exp::<FUSED>(a + a) + 1.0)).copysign(x);
    if a < POLYNOMIAL_BELOW { small } else { large }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid<const FUSED: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FUSED>(-x))
}

/// x * sigmoid(x).
#[inline(always)]
pub(crate) fn silu<const FUSED: bool>(x: f32) -> f32 {
    x / (1.0 + exp::<FUSED>(-x))
}

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written as x / (1 + e^-2u), which has no cancellation.
#[inline(always)]
pub(crate) fn gelu_tanh<const FUSED: bool>(x: f32) -> f32 {
    /// -2 sqrt(2/pi)
    const LINEAR: f32 = -1.595_769_1;
    const CUBIC: f32 = LINEAR * 0.044_715;
    x / (1.0 + exp::<FUSED>(x * fma::<FUSED>(CUBIC, x * x, LINEAR)))
}

/// x/2 erfc(-x / sqrt 2), with erfc as a Chebyshev fit of relative error 1.2e-7 (Numerical Recipes, `erfcc`).
#[inline(always)]
pub(crate) fn gelu_erf<const FUSED: bool>(x: f32) -> f32 {
    let z = (x * std::f32::consts::FRAC_1_SQRT_2).abs();
    let t = 1.0 / fma::<FUSED>(0.5, z, 1.0);
    let p = fma::<FUSED>(0.170_872_77, t, -0.822_152_23);
    let p = fma::<FUSED>(p, t, 1.488_515_9);
    let p = fma::<FUSED>(p, t, -1.135_203_98);
    let p = fma::<FUSED>(p, t, 0.278_868_07);
    let p = fma::<FUSED>(p, t, -0.186_288_06);
    let p = fma::<FUSED>(p, t, 0.096_784_18);
    let p = fma::<FUSED>(p, t, 0.374_091_96);
    let p = fma::<FUSED>(p, t, 1.000_023_68);
    let p = fma::<FUSED>(p, t, -1.265_512_23);
    let tail = t * exp::<FUSED>(fma::<FUSED>(-z, z, p));
    0.5 * x * if x < 0.0 { tail } else { 2.0 - tail }
}

/// The nearest bf16, ties to even; NaN stays NaN. Same bits as `half::bf16::from_f32`, without branches.
#[inline(always)]
pub(crate) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    (if x.is_nan() { quiet } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in units of the last place over a ramp, where the exact result is a normal number.
    fn worst_ulps(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, low: f32, high: f32) -> f64 {
        const STEPS: u32 = 200_000;
        let mut worst = 0f64;
        for i in 0..=STEPS {
            let x = low + (high - low) * (i as f32 / STEPS as f32);
            let want = exact(f64::from(x));
            if (want.abs() as f32).is_normal() {
                let ulp = f64::from(f32::from_bits((want.abs() as f32).to_bits() + 1))
                    - f64::from(want.abs() as f32);
                worst = worst.max((f64::from(f(x)) - want).abs() / ulp);
            }
        }
        worst
    }

    macro_rules! both {
        ($f:ident, $exact:expr, $low:expr, $high:expr, $limit:expr) => {
            for worst in
                [worst_ulps($f::<true>, $exact, $low, $high), worst_ulps($f::<false>, $exact, $low, $high)]
            {
                assert!(worst <= $limit, "{} on [{}, {}]: {worst} ulp", stringify!($f), $low, $high);
            }
        };
    }

    fn exact_gelu_tanh(x: f64) -> f64 {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        x / (1.0 + (-2.0 * u).exp())
    }

    /// erfc by its continued fraction (large z) or Taylor series of erf (small z), in f64.
    fn exact_gelu_erf(x: f64) -> f64 {
        let z = x.abs() / std::f64::consts::SQRT_2;
        let erfc = if z < 2.5 {
            let (mut term, mut sum) = (z, z);
            for n in 1..80 {
                let n = f64::from(n);
                term *= -z * z / n;
                sum += term / (2.0 * n + 1.0);
            }
            1.0 - sum * 2.0 / std::f64::consts::PI.sqrt()
        } else {
            let fraction = (1..120).rev().fold(z, |f, n| z + f64::from(n) / 2.0 / f);
            (-z * z).exp() / std::f64::consts::PI.sqrt() / fraction
        };
        0.5 * x * if x < 0.0 { erfc } else { 2.0 - erfc }
    }

    #[test]
    fn functions_are_within_their_stated_errors() {
        both!(exp, f64::exp, -12.0, 12.0, 2.0);
        both!(exp, f64::exp, -87.0, 88.7, 2.0);
        both!(exp2_of_negative, f64::exp2, -126.0, 0.0, 2.0);
        both!(tanh, f64::tanh, -12.0, 12.0, 3.0);
        both!(tanh, f64::tanh, -0.01, 0.01, 3.0);
        both!(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 80.0, 4.0);
        both!(silu, |x| x / (1.0 + (-x).exp()), -80.0, 80.0, 5.0);
        both!(gelu_tanh, exact_gelu_tanh, 0.0, 12.0, 4.0);
        both!(gelu_erf, exact_gelu_erf, 0.0, 12.0, 8.0);
        // 2^-15 of the value is 512 units of the last place. Below -9.9 the result is 0 and the exact value under 1e-37.
        both!(gelu_tanh, exact_gelu_tanh, -9.9, 0.0, 512.0);
        both!(gelu_erf, exact_gelu_erf, -12.0, 0.0, 512.0);
    }

    #[test]
    fn zero_is_exact_and_limits_are_right() {
        for x in [0.0, -0.0] {
            assert_eq!(gelu_tanh::<true>(x), 0.0);
            assert_eq!(gelu_erf::<true>(x), 0.0);
            assert_eq!(silu::<true>(x), 0.0);
            assert_eq!(tanh::<true>(x), 0.0);
            assert_eq!(exp::<true>(x), 1.0);
        }
        assert_eq!(exp::<true>(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp::<false>(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp::<true>(f32::INFINITY), f32::INFINITY);
        for x in [-126.6, -1e9, f32::NEG_INFINITY] {
            assert_eq!(exp2_of_negative::<true>(x), 0.0, "{x}");
        }
        assert_eq!(exp2_of_negative::<false>(0.0), 1.0);
        assert!(exp2_of_negative::<true>(f32::NAN).is_nan());
        assert_eq!(tanh::<true>(1e30), 1.0);
        assert_eq!(tanh::<true>(-1e30), -1.0);
        assert_eq!(gelu_tanh::<true>(1e4), 1e4);
        assert_eq!(gelu_tanh::<true>(-1e4), 0.0);
        assert!(exp::<true>(f32::NAN).is_nan() && tanh::<true>(f32::NAN).is_nan());
        assert!(gelu_erf::<true>(f32::NAN).is_nan() && silu::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn bf16_rounding_is_that_of_half() {
        for i in 0..2_000_000u32 {
            let x = f32::from_bits(i.wrapping_mul(2_654_435_761));
            assert_eq!(bf16_bits(x), half::bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}
