//! Tests of `norm` against f64.

use super::*;
use crate::testing::{at_every_level, relative_error, to_bf16, values};

fn exact(x: &[f32], width: usize, norm: &Norm<'_>, center: bool) -> Vec<f64> {
    let mut out = Vec::new();
    for row in x.chunks_exact(width) {
        let mean = if center { row.iter().map(|v| f64::from(*v)).sum::<f64>() / width as f64 } else { 0.0 };
        let square = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / width as f64;
        out.extend(row.iter().enumerate().map(|(i, v)| {
            let y = (f64::from(*v) - mean) / (square + f64::from(norm.eps)).sqrt();
            y * norm.weight.map_or(1.0, |w| f64::from(w[i])) + norm.bias.map_or(0.0, |b| f64::from(b[i]))
        }));
    }
    out
}

fn check(x: &[f32], width: usize, norm: &Norm<'_>, tolerance: f64) {
    let shape = [1, 1, x.len() / width, width];
    for center in [true, false] {
        let want = exact(x, width, norm, center);
        for (isa, out) in at_every_level(|engine| {
            let mut out = vec![f32::NAN; x.len()];
            let view = View::contiguous(x, shape).unwrap();
            let mut out_view = ViewMut::contiguous(&mut out, shape).unwrap();
            let run = if center { layer_norm } else { rms_norm };
            run(engine, &view, norm, &mut out_view).unwrap();
            out
        }) {
            let error = relative_error(out, &want);
            assert!(error < tolerance, "{isa} width {width} center {center}: {error}");
        }
    }
}

#[test]
fn rows_of_any_width_are_near_f64() {
    for width in [1, 31, 48, 1152, 1537] {
        let (x, w, b) = (values(5 * width, 1), values(width, 2), values(width, 3));
        for (weight, bias) in
            [(None, None), (Some(&w[..]), None), (None, Some(&b[..])), (Some(&w[..]), Some(&b[..]))]
        {
            check(&x, width, &Norm { weight, bias, eps: 1e-6 }, 1e-6);
        }
    }
}

#[test]
fn rows_far_from_zero_keep_their_precision() {
    let far: Vec<f32> = values(3 * 2048, 4).iter().map(|v| 100.0 + 0.2 * v).collect();
    check(&far, 2048, &Norm { weight: None, bias: None, eps: 1e-6 }, 1e-6);
    let mut outlier = values(3 * 2048, 5);
    outlier.iter_mut().step_by(2048).for_each(|v| *v = 1e3);
    check(&outlier, 2048, &Norm { weight: None, bias: None, eps: 1e-6 }, 1e-6);
}

#[test]
fn a_bf16_result_is_rounded_once() {
    let x = to_bf16(&values(4 * 100, 6));
    let norm = Norm { weight: None, bias: None, eps: 1e-5 };
    at_every_level(|engine| {
        let view = View::contiguous(&x, [1, 2, 2, 100]).unwrap();
        let (mut wide, mut narrow) = (vec![0f32; 400], to_bf16(&[0.0; 400]));
        layer_norm(engine, &view, &norm, &mut ViewMut::contiguous(&mut wide, [1, 2, 2, 100]).unwrap())
            .unwrap();
        layer_norm(engine, &view, &norm, &mut ViewMut::contiguous(&mut narrow, [1, 2, 2, 100]).unwrap())
            .unwrap();
        assert_eq!(narrow, to_bf16(&wide));
    });
}

#[test]
fn mistakes_are_errors() {
    let engine = Engine::new(crate::Isa::Portable, 1).unwrap();
    let x = values(12, 7);
    let mut out = vec![0f32; 12];
    let view = View::contiguous(&x, [1, 1, 3, 4]).unwrap();
    let norm = Norm { weight: Some(&x[..3]), bias: None, eps: 1e-6 };
    assert!(
        rms_norm(&engine, &view, &norm, &mut ViewMut::contiguous(&mut out, [1, 1, 3, 4]).unwrap()).is_err()
    );
    let norm = Norm { weight: None, bias: None, eps: 1e-6 };
    assert!(
        rms_norm(&engine, &view, &norm, &mut ViewMut::contiguous(&mut out, [1, 1, 4, 3]).unwrap()).is_err()
    );
}
