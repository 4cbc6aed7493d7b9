//! Tests of `eltwise` against f64. The functions themselves are tested in `kernels::math`.

use super::*;
use crate::testing::{at_every_level, relative_error, to_bf16, values};
use half::bf16;

#[test]
fn unary_functions_are_near_f64_at_every_level() {
    type Exact = fn(f64) -> f64;
    let cases: [(Unary, Exact); 13] = [
        (Unary::Identity, |x| x),
        (Unary::Exp, f64::exp),
        (Unary::Neg, |x| -x),
        (Unary::Abs, f64::abs),
        (Unary::Square, |x| x * x),
        (Unary::Activation(Activation::Silu), |x| x / (1.0 + (-x).exp())),
        (Unary::Activation(Activation::Relu), |x| x.max(0.0)),
        (Unary::Activation(Activation::Tanh), f64::tanh),
        (Unary::Activation(Activation::Sigmoid), |x| 1.0 / (1.0 + (-x).exp())),
        (Unary::Activation(Activation::GeluTanh), |x| {
            x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).exp())
        }),
        (Unary::Sqrt, f64::sqrt),
        (Unary::Rsqrt, |x| 1.0 / x.sqrt()),
        (Unary::Reciprocal, |x| 1.0 / x),
    ];
    for (f, exact) in cases {
        let positive = matches!(f, Unary::Sqrt | Unary::Rsqrt | Unary::Reciprocal);
        let x: Vec<f32> = (0..1201).map(|i| if positive { 0.25 } else { -12.0 } + i as f32 * 0.02).collect();
        let want: Vec<f64> = x.iter().map(|v| exact(f64::from(*v))).collect();
        for (isa, out) in at_every_level(|engine| {
            let mut out = vec![f32::NAN; x.len()];
            let view = View::contiguous(&x, [1, 1, 1, x.len()]).unwrap();
            unary(engine, f, &view, &mut ViewMut::contiguous(&mut out, [1, 1, 1, x.len()]).unwrap()).unwrap();
            out
        }) {
            let error = relative_error(out, &want);
            assert!(error < 1e-6, "{isa} {f:?}: {error}");
        }
    }
}

#[test]
fn binary_functions_broadcast_and_mix_dtypes() {
    type Exact = fn(f64, f64) -> f64;
    let cases: [(Binary, Exact); 6] = [
        (Binary::Add, |a, b| a + b),
        (Binary::Sub, |a, b| a - b),
        (Binary::Mul, |a, b| a * b),
        (Binary::Div, |a, b| a / b),
        (Binary::Max, f64::max),
        (Binary::Min, f64::min),
    ];
    let (a, b) = (to_bf16(&values(2 * 3 * 600, 1)), values(3, 2));
    for (f, exact) in cases {
        let want: Vec<f64> =
            a.iter().enumerate().map(|(i, a)| exact(a.to_f64(), f64::from(b[i / 600 % 3]))).collect();
        for (isa, out) in at_every_level(|engine| {
            let mut out = vec![f32::NAN; a.len()];
            let a = View::contiguous(&a, [1, 2, 3, 600]).unwrap();
            let b = Operand::View(View::contiguous(&b, [1, 1, 3, 1]).unwrap());
            binary(engine, f, &a, &b, &mut ViewMut::contiguous(&mut out, [1, 2, 3, 600]).unwrap()).unwrap();
            out
        }) {
            assert!(relative_error(out, &want) < 1e-6, "{isa} {f:?}");
        }
    }
    let engine = Engine::new(crate::Isa::detect(), 1).unwrap();
    let mut out = [bf16::ZERO; 2];
    let x = View::contiguous(&a[..2], [1, 1, 1, 2]).unwrap();
    let mut view = ViewMut::contiguous(&mut out[..], [1, 1, 1, 2]).unwrap();
    binary(&engine, Binary::Mul, &x, &Operand::Scalar(3.0), &mut view).unwrap();
    assert_eq!(out, [0, 1].map(|i| bf16::from_f32(a[i].to_f32() * 3.0)));
}

#[test]
fn max_and_min_keep_nan() {
    let engine = Engine::new(crate::Isa::detect(), 1).unwrap();
    let (a, b) = ([f32::NAN, 1.0, 1.0], [1.0, f32::NAN, 2.0]);
    for (f, last) in [(Binary::Max, 2.0), (Binary::Min, 1.0)] {
        let mut out = [0f32; 3];
        let b = Operand::View(View::contiguous(&b[..], [1, 1, 1, 3]).unwrap());
        let mut view = ViewMut::contiguous(&mut out[..], [1, 1, 1, 3]).unwrap();
        binary(&engine, f, &View::contiguous(&a[..], [1, 1, 1, 3]).unwrap(), &b, &mut view).unwrap();
        assert!(out[0].is_nan() && out[1].is_nan() && out[2] == last);
    }
}

#[test]
fn softmax_rows_sum_to_one_and_masked_rows_are_zero() {
    let width = 77;
    let mut x = values(4 * width, 3);
    x[..width].fill(f32::NEG_INFINITY);
    x[width..2 * width].iter_mut().for_each(|v| *v *= 1e4);
    let want: Vec<f64> = x
        .chunks_exact(width)
        .flat_map(|row| {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f64> = row.iter().map(|v| (f64::from(*v) - f64::from(max)).exp()).collect();
            let total: f64 = e.iter().sum();
            e.into_iter().map(move |e| if max == f32::NEG_INFINITY { 0.0 } else { e / total })
        })
        .collect();
    for (isa, out) in at_every_level(|engine| {
        let mut out = vec![f32::NAN; x.len()];
        let view = View::contiguous(&x, [1, 1, 4, width]).unwrap();
        softmax(engine, &view, &mut ViewMut::contiguous(&mut out, [1, 1, 4, width]).unwrap()).unwrap();
        out
    }) {
        assert!(relative_error(out.iter().copied(), &want) < 1e-6, "{isa}");
        assert!(out[..width].iter().all(|v| *v == 0.0));
    }
}

#[test]
fn rotary_turns_the_halves() {
    let (heads, length, width) = (3, 5, 10);
    let x = values(heads * length * width, 4);
    let angles = values(length * width, 5);
    let (cos, sin): (Vec<f32>, Vec<f32>) = angles.iter().map(|a| (a.cos(), a.sin())).unzip();
    let want: Vec<f64> = (0..x.len())
        .map(|i| {
            let (row, e) = (i / width, i % width);
            let other = row * width + (e + width / 2) % width;
            let turned = if e < width / 2 { -f64::from(x[other]) } else { f64::from(x[other]) };
            let at = row % length * width + e;
            f64::from(x[i]) * f64::from(cos[at]) + turned * f64::from(sin[at])
        })
        .collect();
    for (isa, out) in at_every_level(|engine| {
        let mut out = vec![f32::NAN; x.len()];
        let shape = [1, heads, length, width];
        let [cos, sin] = [&cos, &sin].map(|t| View::contiguous(t, [1, 1, length, width]).unwrap());
        let view = View::contiguous(&x, shape).unwrap();
        rotary(engine, &view, &cos, &sin, &mut ViewMut::contiguous(&mut out, shape).unwrap()).unwrap();
        out
    }) {
        assert!(relative_error(out, &want) < 1e-6, "{isa}");
    }
}

#[test]
fn shapes_that_do_not_broadcast_are_errors() {
    let engine = Engine::new(crate::Isa::Portable, 1).unwrap();
    let x = values(12, 6);
    let mut out = vec![0f32; 12];
    let mut view = ViewMut::contiguous(&mut out, [1, 1, 3, 4]).unwrap();
    let bad = View::contiguous(&x, [1, 1, 2, 4]).unwrap();
    let good = View::contiguous(&x, [1, 1, 3, 4]).unwrap();
    assert!(unary(&engine, Unary::Neg, &bad, &mut view).is_err());
    assert!(binary(&engine, Binary::Add, &good, &Operand::View(bad), &mut view).is_err());
    assert!(softmax(&engine, &bad, &mut view).is_err());
    assert!(rotary(&engine, &good, &bad, &good, &mut view).is_err());
}
