//! Single-precision arc tangent by the method of fdlibm (Sun, 1993), which the C libraries of upstream's machines use for it: argument
//! reduction to one of five intervals and an odd polynomial, all in f32. Its last bit is not always the correctly rounded one, and
//! upstream's Euler angles have that last bit.

use std::f32::consts::{FRAC_PI_2, PI};

/// π minus its f32 value.
const PI_LOW: f32 = -8.742_278e-8;
/// Odd polynomial coefficients, lowest power first.
const POLYNOMIAL: [f32; 11] = [
    0.333_333_34,
    -0.2,
    0.142_857_15,
    -0.111_111_104,
    0.090_908_87,
    -0.076_918_76,
    0.066_610_73,
    -0.058_335_703,
    0.049_768_78,
    -0.036_531_57,
    0.016_285_82,
];
/// Quotients beyond 2^60 or below 2^-60 are at the axis.
const EXTREME_EXPONENT: i32 = 60;

/// One interval of the argument: where it ends, the arc tangent of its centre in two parts (the higher one below the true value,
/// for π/4 and π/2 by one bit), the reduction to around 0.
struct Interval {
    below: f32,
    centre: (f32, f32),
    reduce: fn(f32) -> f32,
}

const INTERVALS: [Interval; 4] = [
    Interval {
        below: 0.6875,
        centre: (0.463_647_6, 5.012_158_2e-9),
        reduce: |x| (2.0 * x - 1.0) / (2.0 + x),
    },
    Interval {
        below: 1.1875,
        centre: (f32::from_bits(0x3f49_0fda), 3.774_894_7e-8),
        reduce: |x| (x - 1.0) / (x + 1.0),
    },
    Interval {
        below: 2.4375,
        centre: (0.982_793_7, 3.447_321_7e-8),
        reduce: |x| (x - 1.5) / (1.0 + 1.5 * x),
    },
    Interval {
        below: f32::INFINITY,
        centre: (f32::from_bits(0x3fc9_0fda), 7.549_789_4e-8),
        reduce: |x| -1.0 / x,
    },
];
/// Below this no reduction is needed.
const SMALL: f32 = 0.4375;

/// Arc tangent of `x`, 0 or more and finite.
fn atan_positive(x: f32) -> f32 {
    let interval = if x < SMALL { None } else { INTERVALS.iter().find(|i| x < i.below) };
    let x = interval.map_or(x, |i| (i.reduce)(x));
    let square = x * x;
    let fourth = square * square;
    let [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10] = POLYNOMIAL;
    let even = square * (a0 + fourth * (a2 + fourth * (a4 + fourth * (a6 + fourth * (a8 + fourth * a10)))));
    let odd = fourth * (a1 + fourth * (a3 + fourth * (a5 + fourth * (a7 + fourth * a9))));
    match interval {
        None => x - x * (even + odd),
        Some(Interval { centre: (high, low), .. }) => high - ((x * (even + odd) - low) - x),
    }
}

/// Angle of the point (`x`, `y`) in radians.
pub(super) fn atan2f(y: f32, x: f32) -> f32 {
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        // On an axis, at infinity, or NaN: exact, and no method differs.
        return f64::from(y).atan2(f64::from(x)) as f32;
    }
    let exponent = |v: f32| (v.abs().to_bits() >> 23) as i32;
    let difference = exponent(y) - exponent(x);
    let angle = if difference > EXTREME_EXPONENT {
        FRAC_PI_2
    } else if x < 0.0 && difference < -EXTREME_EXPONENT {
        0.0
    } else {
        atan_positive((y / x).abs())
    };
    let angle = if x < 0.0 { PI - (angle - PI_LOW) } else { angle };
    if y < 0.0 { -angle } else { angle }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::atan2f;

    proptest! {
        #[test]
        fn within_one_unit_of_the_true_angle(y in -1e6_f32..1e6, x in -1e6_f32..1e6) {
            let true_angle = f64::from(y).atan2(f64::from(x));
            let got = f64::from(atan2f(y, x));
            prop_assert!((got - true_angle).abs() <= true_angle.abs() * 1.2e-7);
        }

        #[test]
        fn any_bits_give_what_double_precision_gives(y: f32, x: f32) {
            let true_angle = f64::from(y).atan2(f64::from(x));
            let got = f64::from(atan2f(y, x));
            prop_assert!(got.is_nan() == true_angle.is_nan());
            prop_assert!(got.is_nan() || (got - true_angle).abs() <= true_angle.abs() * 1.2e-7 + 1e-40);
        }
    }

    #[test]
    fn axes_are_exact() {
        use std::f32::consts::{FRAC_PI_2, PI};
        assert_eq!(atan2f(0.0, 1.0), 0.0);
        assert_eq!(atan2f(0.0, -1.0), PI);
        assert_eq!(atan2f(-0.0, -1.0), -PI);
        assert_eq!(atan2f(2.0, 0.0), FRAC_PI_2);
        assert_eq!(atan2f(-2.0, 0.0), -FRAC_PI_2);
    }
}
