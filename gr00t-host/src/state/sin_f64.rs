//! Double-precision sine and cosine as torch computes them on x86 CPUs, by the method that Intel published with Android's C library
//! (`libm/x86_64/s_sin.S` in bionic) on a finer grid: the angle is reduced to a multiple of π/256 and a rest of at most π/512, the multiple's
//! sine and cosine come from a table, the rest's from short polynomials, and the parts are added from small to large. Within 0.502 units of
//! the last place; upstream's states in double precision have these last bits.
//!
//! Grid, order of the sum and the sine's coefficients were found by comparing results with torch 2.5.1's. Torch's math library takes
//! fused steps on some processors only. Without them, of 8 million random angles in ±100 rad 1 differs; with them, 1 in 8,500 (AVX2) or
//! 1 in 800 (AVX-512). Correctly rounded ones would differ in 1 in 3,300, 3,600 and 840.

use std::f64::consts::{FRAC_1_PI, PI};
use std::sync::LazyLock;

/// Grid steps in half a turn, and in the whole table.
const HALF_TURN: usize = 256;
const TURN: usize = 2 * HALF_TURN;
const QUARTER_TURN: usize = HALF_TURN / 2;
/// π in three parts: the first two of so few bits that their products with a step number are exact.
const PI_PARTS: [f64; 3] = [3.1415926534682512, 1.2154201012607932e-10, 4.044532497591901e-21];
/// π minus its f64 value.
const PI_LOW: f64 = 1.2246467991473532e-16;
/// Beyond this torch reduces the argument by another method; there the standard library's functions are as good a guess as any.
const MAX_ANGLE: f64 = 1e4;
/// sin(r)/r − 1 over r², and cos(r) − 1 over r², on ±π/512, lowest power of r² first.
const SIN_POLYNOMIAL: [f64; 2] = [-1.0 / 6.0 + 1.211_452_654e-13, 1.0 / 120.0 - 1.040_069_583_6e-8];
const COS_POLYNOMIAL: [f64; 3] = [-0.5, 1.0 / 24.0, -1.0 / 720.0];
/// Taylor terms that give a table entry in twice the precision.
const TABLE_TERMS: u32 = 18;

/// Sine and cosine of one grid point.
#[derive(Clone, Copy, Default)]
struct Point {
    sin: f64,
    /// The sine minus `sin`.
    sin_low: f64,
    /// The cosine is `scale`, a power of two (or 0) whose products are exact, plus `cos_rest`.
    scale: f64,
    cos_rest: f64,
}

static POINTS: LazyLock<[Point; TURN]> = LazyLock::new(|| {
    let quadrant: [(f64, f64); QUARTER_TURN + 1] = std::array::from_fn(precise_sine);
    let sine = |step: usize| {
        let within = step % HALF_TURN;
        let (high, low) = quadrant[within.min(HALF_TURN - within)];
        if step % TURN < HALF_TURN { (high, low) } else { (-high, -low) }
    };
    std::array::from_fn(|step| {
        let (sin, sin_low) = sine(step);
        let (cos, cos_low) = sine(step + QUARTER_TURN);
        let scale = nearest_power_of_two(cos);
        Point { sin, sin_low: f64::from(sin_low as f32), scale, cos_rest: (cos - scale) + cos_low }
    })
});

/// The power of two that is nearest to a number of at most 1, with its sign; 0 for 0.
fn nearest_power_of_two(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude == 0.0 {
        return 0.0;
    }
    let mut power = 1.0;
    while power - magnitude > magnitude - power / 2.0 {
        power /= 2.0;
    }
    power.copysign(x)
}

/// Sine of a grid point in the first quadrant as the sum of two numbers: the Taylor series in double-double arithmetic.
fn precise_sine(step: usize) -> (f64, f64) {
    let turns = step as f64 / HALF_TURN as f64;
    let angle = add((PI * turns, PI.mul_add(turns, -(PI * turns))), (PI_LOW * turns, 0.0));
    let minus_square = multiply(angle, (-angle.0, -angle.1));
    let (mut sum, mut term) = (angle, angle);
    for n in 1..=TABLE_TERMS {
        let divisor = f64::from(2 * n * (2 * n + 1));
        let (high, low) = multiply(term, minus_square);
        let quotient = high / divisor;
        term = add((quotient, 0.0), (((-quotient).mul_add(divisor, high) + low) / divisor, 0.0));
        sum = add(sum, term);
    }
    sum
}

/// Sum of two numbers of two parts each.
fn add(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let sum = a.0 + b.0;
    let from_b = sum - a.0;
    let low = ((a.0 - (sum - from_b)) + (b.0 - from_b)) + (a.1 + b.1);
    let high = sum + low;
    (high, (sum - high) + low)
}

/// Product of two numbers of two parts each.
fn multiply(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let product = a.0 * b.0;
    let low = a.0.mul_add(b.0, -product) + (a.0 * b.1 + a.1 * b.0);
    let high = product + low;
    (high, (product - high) + low)
}

/// Sine of an angle of at most `MAX_ANGLE` that lies `shift` grid steps further on.
fn sine_from_grid(angle: f64, shift: i64) -> f64 {
    let step = (angle * (HALF_TURN as f64 * FRAC_1_PI)).round_ties_even();
    let [first, second, third] = PI_PARTS.map(|part| step * (part / HALF_TURN as f64));
    let almost = angle - first;
    let rest = almost - second;
    let rest_low = ((almost - rest) - second) - third;

    let index = (step as i64 + shift).rem_euclid(TURN as i64) as usize;
    let Point { sin, sin_low, scale, cos_rest } = POINTS[index];
    let cos = cos_rest + scale;
    let square = rest * rest;
    let [s0, s1] = SIN_POLYNOMIAL;
    let [c0, c1, c2] = COS_POLYNOMIAL;
    let from_sin = (s0 + square * s1) * square * rest * cos;
    let from_cos = (c0 + square * (c1 + square * c2)) * square * sin;

    // Two sums whose rounding errors are kept: sin + scale·rest, plus cos_rest·rest.
    let (linear, small_linear) = (scale * rest, cos_rest * rest);
    let sum = linear + sin;
    let sum_low = (sin - sum) + linear;
    let result = small_linear + sum;
    let result_low = (sum - result) + small_linear;
    let correction = rest_low * (cos - sin * rest) + sin_low;
    result + ((sum_low + result_low) + (correction + (from_sin + from_cos)))
}

/// Sine of an angle in radians.
pub(super) fn sin(angle: f64) -> f64 {
    if angle == 0.0 {
        angle // keeps its sign
    } else if angle.abs() < MAX_ANGLE {
        sine_from_grid(angle, 0)
    } else {
        angle.sin()
    }
}

/// Cosine of an angle in radians.
pub(super) fn cos(angle: f64) -> f64 {
    if angle.abs() < MAX_ANGLE { sine_from_grid(angle, QUARTER_TURN as i64) } else { angle.cos() }
}
