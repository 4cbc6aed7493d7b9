//! Tests of `linear`, `matmul` and of packed weights in use, against f64.

use super::*;
use crate::activation::Activation;
use crate::pack::{WeightFormat, WeightOrder};
use crate::testing::{at_every_level, relative_error, to_bf16, values};
use half::bf16;

/// x [m, k] times w [k, n] in f64.
fn product(x: &[f32], w: &[f32], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for (row, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(k)) {
        for (x, w) in x.iter().zip(w.chunks_exact(n)) {
            for (out, w) in row.iter_mut().zip(w) {
                *out += f64::from(*x) * f64::from(*w);
            }
        }
    }
    assert_eq!(out.len(), m * n);
    out
}

fn rounded(x: &[f32]) -> Vec<f32> {
    to_bf16(x).into_iter().map(bf16::to_f32).collect()
}

#[test]
fn linear_is_near_f64_at_odd_sizes_in_every_format() {
    for (m, k, n) in
        [(1, 1, 1), (5, 7, 33), (13, 588, 70), (49, 33, 31), (25, 4304, 45), (97, 513, 64), (100, 1600, 140)]
    {
        let (x, w) = (values(m * k, 1), values(n * k, 2));
        for format in WeightFormat::ALL {
            let results = at_every_level(|engine| {
                let source = View::contiguous(&w, [1, 1, n, k]).unwrap();
                let weight = PackedWeight::pack(engine, &[source], WeightOrder::OutIn, format).unwrap();
                let mut out = vec![f32::NAN; m * n];
                let x = View::contiguous(&x, [1, 1, m, k]).unwrap();
                let mut view = ViewMut::contiguous(&mut out, [1, 1, m, n]).unwrap();
                linear(engine, &x, &weight, &Epilogue::default(), &mut view).unwrap();
                (out, weight.to_f32())
            });
            for (isa, (out, w)) in results {
                let x = if format == WeightFormat::F32 { x.clone() } else { rounded(&x) };
                let error = relative_error(out, &product(&x, &w, m, k, n));
                assert!(error < 2e-6, "{isa} {} [{m}, {k}, {n}]: {error}", format.name());
            }
        }
    }
}

#[test]
fn sums_of_4096_ones_are_exact_in_every_format() {
    let ones = vec![1f32; 4096];
    for format in WeightFormat::ALL {
        at_every_level(|engine| {
            let source = View::contiguous(&ones, [1, 1, 4096, 1]).unwrap();
            let weight = PackedWeight::pack(engine, &[source], WeightOrder::InOut, format).unwrap();
            let mut out = [0f32];
            let x = View::contiguous(&ones, [1, 1, 1, 4096]).unwrap();
            let mut view = ViewMut::contiguous(&mut out[..], [1, 1, 1, 1]).unwrap();
            linear(engine, &x, &weight, &Epilogue::default(), &mut view).unwrap();
            assert_eq!(out, [4096.0], "{}", format.name());
        });
    }
}

#[test]
fn a_row_does_not_depend_on_the_other_rows() {
    let (m, k, n) = (31, 300, 40);
    let (x, w) = (to_bf16(&values(m * k, 3)), values(n * k, 4));
    at_every_level(|engine| {
        let source = View::contiguous(&w, [1, 1, n, k]).unwrap();
        let weight = PackedWeight::pack(engine, &[source], WeightOrder::OutIn, WeightFormat::Bfp8B).unwrap();
        let run = |x: View<'_>| {
            let rows = x.shape()[2];
            let mut out = vec![0f32; rows * n];
            let mut view = ViewMut::contiguous(&mut out, [1, 1, rows, n]).unwrap();
            linear(engine, &x, &weight, &Epilogue::default(), &mut view).unwrap();
            out
        };
        let all = View::contiguous(&x, [1, 1, m, k]).unwrap();
        let together = run(all);
        for row in [0, 11, 30] {
            assert_eq!(run(all.slice(2, row, 1).unwrap()), together[row * n..(row + 1) * n]);
        }
    });
}

#[test]
fn the_epilogue_adds_bias_then_activates_then_adds_the_residual() {
    let (m, k, n) = (14, 20, 50);
    let (x, w, bias, residual) =
        (values(m * k, 5), values(k * n, 6), values(n, 7), to_bf16(&values(m * n, 8)));
    let want: Vec<f64> = product(&x, &w, m, k, n)
        .iter()
        .enumerate()
        .map(|(i, sum)| (sum + f64::from(bias[i % n])).max(0.0) + residual[i].to_f64())
        .collect();
    for (isa, (from, in_place)) in at_every_level(|engine| {
        let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
        let weight = PackedWeight::pack(engine, &[source], WeightOrder::InOut, WeightFormat::F32).unwrap();
        let x = View::contiguous(&x, [1, 1, m, k]).unwrap();
        let added = View::contiguous(&residual, [1, 1, m, n]).unwrap();
        let epilogue =
            |residual| Epilogue { bias: Some(&bias), activation: Some(Activation::Relu), residual };
        let mut from = vec![0f32; m * n];
        let mut view = ViewMut::contiguous(&mut from, [1, 1, m, n]).unwrap();
        linear(engine, &x, &weight, &epilogue(Residual::From(added)), &mut view).unwrap();
        let mut in_place = residual.clone();
        let mut view = ViewMut::contiguous(&mut in_place, [1, 1, m, n]).unwrap();
        linear(engine, &x, &weight, &epilogue(Residual::InPlace), &mut view).unwrap();
        (from, in_place)
    }) {
        assert!(relative_error(from.iter().copied(), &want) < 1e-6, "{isa}");
        assert_eq!(in_place, to_bf16(&from), "{isa}: rounded once");
    }
}

#[test]
fn strided_rows_are_read_and_written_in_place_and_padding_is_left_alone() {
    let (m, k, n) = (9, 40, 24);
    let mut x = vec![f32::NAN; 2 * m * 50];
    for (row, v) in x.chunks_exact_mut(50).zip(values(2 * m * k, 9).chunks_exact(k)) {
        row[5..5 + k].copy_from_slice(v);
    }
    let w = values(k * n, 10);
    at_every_level(|engine| {
        let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
        let weight = PackedWeight::pack(engine, &[source], WeightOrder::InOut, WeightFormat::Bf16).unwrap();
        let view = View::contiguous(&x, [1, 2, m, 50]).unwrap().slice(3, 5, k).unwrap();
        let mut out = vec![7f32; m * 2 * 30];
        let heads = ViewMut::contiguous(&mut out, [1, m, 2, 30]).unwrap().permute([0, 2, 1, 3]).unwrap();
        linear(engine, &view, &weight, &Epilogue::default(), &mut heads.slice(3, 0, n).unwrap()).unwrap();
        for row in out.chunks_exact(30) {
            assert!(row[..n].iter().all(|v| v.is_finite()) && row[n..] == [7.0; 6]);
        }
        out
    });
}

#[test]
fn residuals_of_any_layout_are_added_where_they_belong() {
    // Matrices end inside the pieces in which rows are finished; columns are a panel and a part of one.
    let (heads, m, k, n) = (3, 11, 8, 40);
    let (x, w, added) = (values(heads * m * k, 11), values(k * n, 12), values(heads * m * n, 13));
    let want: Vec<f64> = product(&x, &w, heads * m, k, n)
        .iter()
        .enumerate()
        // [1, heads, m, n], read from [m, heads, n] or, columns first, [n, heads, m]
        .map(|(i, sum)| {
            let (head, row, column) = (i / (m * n), i / n % m, i % n);
            sum + f64::from(added[(row * heads + head) * n + column])
        })
        .collect();
    let mut columns_first = vec![0f32; added.len()];
    for (i, v) in added.iter().enumerate() {
        let (row, head, column) = (i / (heads * n), i / n % heads, i % n);
        columns_first[(column * heads + head) * m + row] = *v;
    }
    let merged = View::contiguous(&added, [1, m, heads, n]).unwrap().permute([0, 2, 1, 3]).unwrap();
    let turned = View::contiguous(&columns_first, [1, n, heads, m]).unwrap().permute([0, 2, 3, 1]).unwrap();
    for residual in [merged, turned] {
        for (isa, (plain, spread)) in at_every_level(|engine| {
            let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
            let weight =
                PackedWeight::pack(engine, &[source], WeightOrder::InOut, WeightFormat::Bf16).unwrap();
            let x = View::contiguous(&x, [1, heads, m, k]).unwrap();
            let epilogue = Epilogue { residual: Residual::From(residual), ..Epilogue::default() };
            let mut plain = vec![0f32; want.len()];
            let mut view = ViewMut::contiguous(&mut plain, [1, heads, m, n]).unwrap();
            linear(engine, &x, &weight, &epilogue, &mut view).unwrap();
            let mut spread = vec![bf16::NAN; want.len()];
            let view = ViewMut::contiguous(&mut spread, [1, m, heads, n]).unwrap();
            linear(engine, &x, &weight, &epilogue, &mut view.permute([0, 2, 1, 3]).unwrap()).unwrap();
            (plain, spread)
        }) {
            assert!(relative_error(plain.iter().copied(), &want) < 1e-2, "{isa}: products of bf16");
            for (i, v) in plain.iter().enumerate() {
                let (head, row, column) = (i / (m * n), i / n % m, i % n);
                assert_eq!(spread[(row * heads + head) * n + column], bf16::from_f32(*v), "{isa} {i}");
            }
        }
    }
}

#[test]
fn mistakes_are_errors_that_name_both_sides() {
    let engine = Engine::new(crate::Isa::Portable, 1).unwrap();
    let w = values(6, 1);
    let source = View::contiguous(&w, [1, 1, 2, 3]).unwrap();
    let weight = PackedWeight::pack(&engine, &[source], WeightOrder::OutIn, WeightFormat::Bf16).unwrap();
    let x = values(8, 2);
    let mut out = vec![0f32; 4];
    let bad = View::contiguous(&x, [1, 1, 2, 4]).unwrap();
    let mut view = ViewMut::contiguous(&mut out, [1, 1, 2, 2]).unwrap();
    let message = linear(&engine, &bad, &weight, &Epilogue::default(), &mut view).unwrap_err().to_string();
    assert_eq!(message, "shape mismatch in linear: x is [1, 1, 2, 4], wanted [1, 1, 2, 3]");
    let good = View::contiguous(&x, [1, 1, 2, 3]).unwrap();
    let short = Epilogue { bias: Some(&[1.0]), ..Epilogue::default() };
    assert!(linear(&engine, &good, &weight, &short, &mut view).is_err());
    let mut wrong = ViewMut::contiguous(&mut out, [1, 1, 1, 2]).unwrap();
    assert!(linear(&engine, &good, &weight, &Epilogue::default(), &mut wrong).is_err());
    let ids = [1u32; 6];
    let ids = View::contiguous(&ids[..], [1, 1, 2, 3]).unwrap();
    let mut view = ViewMut::contiguous(&mut out, [1, 1, 2, 2]).unwrap();
    assert!(linear(&engine, &ids, &weight, &Epilogue::default(), &mut view).is_err());
}

#[test]
fn matmul_is_near_f64_batched_and_transposed() {
    for (batch, m, k, n) in [(1, 1, 1, 1), (3, 101, 48, 37), (2, 40, 588, 5)] {
        let (a, b) = (values(batch * m * k, 11), to_bf16(&values(k * n, 12)));
        let b_f32: Vec<f32> = b.iter().map(|v| v.to_f32()).collect();
        let mut transposed = vec![bf16::ZERO; k * n];
        for (i, v) in b.iter().enumerate() {
            transposed[i % n * k + i / n] = *v;
        }
        for (isa, (plain, turned)) in at_every_level(|engine| {
            let a = View::contiguous(&a, [1, batch, m, k]).unwrap();
            let run = |b: View<'_>, transpose| {
                let mut out = vec![f32::NAN; batch * m * n];
                let mut view = ViewMut::contiguous(&mut out, [1, batch, m, n]).unwrap();
                matmul(engine, &a, &b, transpose, &mut view).unwrap();
                out
            };
            let plain = run(View::contiguous(&b, [1, 1, k, n]).unwrap(), false);
            (plain, run(View::contiguous(&transposed, [1, 1, n, k]).unwrap(), true))
        }) {
            let want = product(&a, &b_f32, batch * m, k, n);
            assert!(relative_error(plain.iter().copied(), &want) < 2e-6, "{isa}");
            assert_eq!(plain, turned, "{isa}");
        }
    }
}

#[test]
fn many_rows_are_done_in_parts() {
    let (m, k, n) = (1030, 34, 40);
    let (x, w) = (values(m * k, 13), values(k * n, 14));
    for (isa, out) in at_every_level(|engine| {
        let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
        let weight = PackedWeight::pack(engine, &[source], WeightOrder::InOut, WeightFormat::F32).unwrap();
        let mut out = vec![f32::NAN; m * n];
        let x = View::contiguous(&x, [1, 1, m, k]).unwrap();
        let mut view = ViewMut::contiguous(&mut out, [1, 1, m, n]).unwrap();
        linear(engine, &x, &weight, &Epilogue::default(), &mut view).unwrap();
        out
    }) {
        assert!(relative_error(out, &product(&x, &w, m, k, n)) < 1e-6, "{isa}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod amx {
    //! What a product costs at the AMX level, counted on emulated tiles.

    use super::*;
    use crate::amx_emulation::Counts;
    use crate::testing::needs_amx_emulation;

    /// Instructions of `x [m, k] w [k, n]` on one thread.
    fn counts([m, k, n]: [usize; 3], format: WeightFormat) -> Counts {
        let engine = Engine::new(crate::Isa::Avx512, 1).unwrap().with_kernels(crate::kernels::AMX_EMULATED);
        let w = vec![0.5f32; k * n];
        let source = View::contiguous(&w, [1, 1, n, k]).unwrap();
        let weight = PackedWeight::pack(&engine, &[source], WeightOrder::OutIn, format).unwrap();
        let x = to_bf16(&vec![0.25; m * k]);
        let x = View::contiguous(&x, [1, 1, m, k]).unwrap();
        let mut out = vec![bf16::ZERO; m * n];
        let mut view = ViewMut::contiguous(&mut out, [1, 1, m, n]).unwrap();
        Counts::of(|| linear(&engine, &x, &weight, &Epilogue::default(), &mut view).unwrap())
    }

    #[test]
    fn a_product_configures_once_and_multiplies_no_more_tiles_than_it_has() {
        if !needs_amx_emulation() {
            println!("skipped: this CPU has AMX, or no AVX-512");
            return;
        }
        for format in [WeightFormat::Bf16, WeightFormat::Bfp8B, WeightFormat::Bfp4B] {
            for [m, k, n] in [[49, 1536, 96], [1, 100, 32], [33, 2100, 70], [296, 160, 64]] {
                let counts = counts([m, k, n], format);
                let (tiles, steps, panels) = (m.div_ceil(16), k.div_ceil(32), n.div_ceil(32));
                assert_eq!(counts.products, (2 * tiles * steps * panels) as u64, "[{m}, {k}, {n}]");
                assert_eq!((counts.configurations, counts.releases), (1, 1));
                // Two tiles of rows share B; an odd one has its own.
                let operands = (tiles + 2 * tiles.div_ceil(2)) * steps * panels;
                let sums = counts.loads - operands as u64;
                assert!(sums < counts.products / 4, "[{m}, {k}, {n}]: {sums} loads of sums");
            }
        }
    }

    #[test]
    #[ignore = "reason: prints counts, for docs/performance.md; half a minute"]
    fn counts_of_the_models_shapes() {
        if !needs_amx_emulation() {
            println!("skipped: this CPU has AMX, or no AVX-512");
            return;
        }
        for shape in [
            [256, 1152, 1152],
            [256, 4304, 1152],
            [296, 2048, 2048],
            [296, 2048, 6144],
            [296, 6144, 2048],
            [49, 1536, 1536],
            [49, 1536, 6144],
            [49, 6144, 1536],
        ] {
            for format in [WeightFormat::Bf16, WeightFormat::Bfp8B] {
                println!("{shape:?} {:10} {:?}", format.name(), counts(shape, format));
            }
        }
    }
}
