//! Loops over slices of f32 that each level compiles with its own features. Sums use a fixed number of partial sums, so
//! that every level adds in the same order.

use super::math::{self, fma};
use super::{NormRow, PANEL};
use crate::activation::Activation;
use crate::eltwise::{Binary, Unary};
use half::bf16;

/// Partial sums of a reduction: two AVX-512 registers.
const LANES: usize = 32;

#[inline(always)]
pub(crate) fn widen(x: &[bf16], out: &mut [f32]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o = f32::from_bits(u32::from(v.to_bits()) << 16);
    }
}

#[inline(always)]
pub(crate) fn narrow(x: &[f32], out: &mut [bf16]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o = bf16::from_bits(math::bf16_bits(*v));
    }
}

#[inline(always)]
fn map(x: &mut [f32], f: impl Fn(f32) -> f32) {
    for v in x {
        *v = f(*v);
    }
}

#[inline(always)]
pub(crate) fn activation<const FUSED: bool>(f: Activation, x: &mut [f32]) {
    match f {
        Activation::GeluTanh => map(x, math::gelu_tanh::<FUSED>),
        Activation::GeluErf => map(x, math::gelu_erf::<FUSED>),
        Activation::Silu => map(x, math::silu::<FUSED>),
        Activation::Relu => map(x, |v| if v < 0.0 { 0.0 } else { v }),
        Activation::Tanh => map(x, math::tanh::<FUSED>),
        Activation::Sigmoid => map(x, math::sigmoid::<FUSED>),
    }
}

#[inline(always)]
pub(crate) fn unary<const FUSED: bool>(f: Unary, x: &mut [f32]) {
    match f {
        Unary::Identity => {}
        Unary::Activation(f) => activation::<FUSED>(f, x),
        Unary::Exp => map(x, math::exp::<FUSED>),
        Unary::Neg => map(x, |v| -v),
        Unary::Abs => map(x, f32::abs),
        Unary::Square => map(x, |v| v * v),
        Unary::Sqrt => map(x, f32::sqrt),
        Unary::Rsqrt => map(x, |v| 1.0 / v.sqrt()),
        Unary::Reciprocal => map(x, |v| 1.0 / v),
    }
}

#[inline(always)]
fn zip(a: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = f(*x, *y);
    }
}

#[inline(always)]
pub(crate) fn binary(f: Binary, a: &mut [f32], b: &[f32]) {
    match f {
        Binary::Add => zip(a, b, |x, y| x + y),
        Binary::Sub => zip(a, b, |x, y| x - y),
        Binary::Mul => zip(a, b, |x, y| x * y),
        Binary::Div => zip(a, b, |x, y| x / y),
        // Written so that a NaN on either side stays.
        Binary::Max => zip(a, b, |x, y| if x > y || x.is_nan() { x } else { y }),
        Binary::Min => zip(a, b, |x, y| if x < y || x.is_nan() { x } else { y }),
    }
}

/// Folds the values of `x` into `LANES` partial results and then those in halves.
#[inline(always)]
fn reduce(x: &[f32], start: f32, step: impl Fn(f32, f32) -> f32, merge: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *v);
        }
    }
    for (lane, v) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, *v);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = merge(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
fn sum(x: &[f32]) -> f32 {
    reduce(x, 0.0, |s, v| s + v, |a, b| a + b)
}

#[inline(always)]
pub(crate) fn softmax<const FUSED: bool>(x: &mut [f32]) {
    let max = reduce(x, f32::NEG_INFINITY, larger, larger);
    let max = if max == f32::NEG_INFINITY { 0.0 } else { max };
    map(x, |v| math::exp::<FUSED>(v - max));
    let sum = sum(x);
    // Not `sum > 0`: a NaN must stay NaN.
    let inverse = if sum == 0.0 { 0.0 } else { 1.0 / sum };
    map(x, |v| v * inverse);
}

/// The largest value of each column times `scale`, 0 where all are `-inf`.
#[inline(always)]
fn column_maxima(x: &[f32], scale: f32) -> [f32; PANEL] {
    let mut max = [f32::NEG_INFINITY; PANEL];
    for row in x.chunks_exact(PANEL) {
        for (m, v) in max.iter_mut().zip(row) {
            *m = larger(*v, *m);
        }
    }
    max.map(|m| if m == f32::NEG_INFINITY { 0.0 } else { m * scale })
}

/// e^(v scale - max). The product is rounded before anything else happens, so that values that were multiplied before give the
/// same bits with a scale of 1.
#[inline(always)]
fn power<const FUSED: bool>(v: f32, scale: f32, max: f32) -> f32 {
    math::exp2_of_negative::<FUSED>((v * scale - max) * std::f32::consts::LOG2_E)
}

#[inline(always)]
pub(crate) fn exp_columns<const FUSED: bool>(x: &mut [f32], scale: f32, sums: &mut [f32; PANEL]) {
    let max = column_maxima(x, scale);
    let mut total = [0f32; PANEL];
    for row in x.chunks_exact_mut(PANEL) {
        for ((v, max), total) in row.iter_mut().zip(&max).zip(&mut total) {
            *v = power::<FUSED>(*v, scale, *max);
            *total += *v;
        }
    }
    *sums = total;
}

#[inline(always)]
fn scale_and_shift<const FUSED: bool>(x: &mut [f32], norm: NormRow<'_>, mean: f32, scale: f32) {
    map(x, |v| (v - mean) * scale);
    match (norm.weight, norm.bias) {
        (Some(w), Some(b)) => {
            for ((v, w), b) in x.iter_mut().zip(w).zip(b) {
                *v = fma::<FUSED>(*v, *w, *b);
            }
        }
        (Some(w), None) => binary(Binary::Mul, x, w),
        (None, Some(b)) => binary(Binary::Add, x, b),
        (None, None) => {}
    }
}

/// Takes away the mean, then the mean of what is left, which is the rounding error of the first; then the variance.
#[inline(always)]
pub(crate) fn layer_norm<const FUSED: bool>(x: &mut [f32], norm: NormRow<'_>) {
    let count = x.len() as f32;
    let mean = sum(x) / count;
    map(x, |v| v - mean);
    let rest = sum(x) / count;
    let square = |s: f32, v: f32| fma::<FUSED>(v - rest, v - rest, s);
    let variance = reduce(x, 0.0, square, |a, b| a + b) / count;
    scale_and_shift::<FUSED>(x, norm, rest, 1.0 / (variance + norm.eps).sqrt());
}

#[inline(always)]
pub(crate) fn rms_norm<const FUSED: bool>(x: &mut [f32], norm: NormRow<'_>) {
    let square = reduce(x, 0.0, |s, v| fma::<FUSED>(v, v, s), |a, b| a + b) / x.len() as f32;
    scale_and_shift::<FUSED>(x, norm, 0.0, 1.0 / (square + norm.eps).sqrt());
}

/// `(a, b) <- (a cos - b sin, b cos' + a sin')`.
#[inline(always)]
pub(crate) fn rotate(a: &mut [f32], b: &mut [f32], [cos_a, sin_a, cos_b, sin_b]: [&[f32]; 4]) {
    let tables = cos_a.iter().zip(sin_a).zip(cos_b.iter().zip(sin_b));
    for ((x, y), ((ca, sa), (cb, sb))) in a.iter_mut().zip(b).zip(tables) {
        (*x, *y) = (*x * ca - *y * sa, *y * cb + *x * sb);
    }
}
