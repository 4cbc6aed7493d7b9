//! Tests of `attention` against f64.

use super::*;
use crate::Isa;
use crate::testing::{at_every_level, relative_error, to_bf16, values};
use half::bf16;

struct Case {
    batch: usize,
    heads: usize,
    kv_heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
}

impl Case {
    fn inputs(&self) -> [Vec<bf16>; 3] {
        let q = self.batch * self.heads * self.queries * self.width;
        let kv = self.batch * self.kv_heads * self.keys * self.width;
        [to_bf16(&values(q, 1)), to_bf16(&values(kv, 2)), to_bf16(&values(kv, 3))]
    }

    fn shapes(&self) -> [[usize; 4]; 2] {
        [
            [self.batch, self.heads, self.queries, self.width],
            [self.batch, self.kv_heads, self.keys, self.width],
        ]
    }

    /// The result in f64, with a function for what is added to each score.
    fn exact(
        &self,
        [q, k, v]: &[Vec<bf16>; 3],
        added: impl Fn(usize, usize, usize, usize) -> f64,
    ) -> Vec<f64> {
        let w = self.width;
        let mut out = Vec::new();
        for b in 0..self.batch {
            for h in 0..self.heads {
                let kv = (b * self.kv_heads + h * self.kv_heads / self.heads) * self.keys;
                for i in 0..self.queries {
                    let q = &q[((b * self.heads + h) * self.queries + i) * w..][..w];
                    let row = |x: &[bf16], t: usize| {
                        x[(kv + t) * w..][..w].iter().map(|v| v.to_f64()).collect::<Vec<_>>()
                    };
                    let scores: Vec<f64> = (0..self.keys)
                        .map(|t| {
                            let dot: f64 = row(k, t).iter().zip(q).map(|(k, q)| k * q.to_f64()).sum();
                            dot / (w as f64).sqrt() + added(b, h, i, t)
                        })
                        .collect();
                    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let p: Vec<f64> = scores
                        .iter()
                        .map(|s| if *s == f64::NEG_INFINITY { 0.0 } else { (s - max).exp() })
                        .collect();
                    let total: f64 = p.iter().sum();
                    let mut sum = vec![0.0; w];
                    for (t, p) in p.iter().enumerate() {
                        sum.iter_mut().zip(row(v, t)).for_each(|(s, v)| *s += p * v);
                    }
                    out.extend(sum.iter().map(|s| if total == 0.0 { 0.0 } else { s / total }));
                }
            }
        }
        out
    }

    fn run(&self, engine: &Engine, [q, k, v]: &[Vec<bf16>; 3], config: &SdpaConfig<'_>) -> Vec<f32> {
        let [q_shape, kv_shape] = self.shapes();
        let mut out = vec![f32::NAN; q_shape.iter().product()];
        let mut view = ViewMut::contiguous(&mut out, q_shape).unwrap();
        let q = View::contiguous(q, q_shape).unwrap();
        let [k, v] = [k, v].map(|x| View::contiguous(x, kv_shape).unwrap());
        sdpa(engine, &q, &k, &v, config, &mut view).unwrap();
        out
    }
}

const TOLERANCE: f64 = 3e-6;

#[test]
fn every_head_dimension_and_length_is_near_f64() {
    for (heads, kv_heads, queries, keys, width) in [
        (3, 3, 49, 49, 48),
        (4, 2, 33, 81, 64),
        (2, 1, 70, 70, 72),
        (4, 2, 16, 40, 128),
        (1, 1, 1, 1, 5),
        (6, 2, 31, 3, 24),
    ] {
        let case = Case { batch: 2, heads, kv_heads, queries, keys, width };
        let inputs = case.inputs();
        let want = case.exact(&inputs, |_, _, _, _| 0.0);
        for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &SdpaConfig::default())) {
            let error = relative_error(out, &want);
            assert!(error < TOLERANCE, "{isa} heads {heads} [{queries}, {keys}, {width}]: {error}");
        }
    }
}

#[test]
fn causal_queries_see_only_the_keys_before_them() {
    let case = Case { batch: 1, heads: 4, kv_heads: 2, queries: 75, keys: 75, width: 32 };
    let inputs = case.inputs();
    let want = case.exact(&inputs, |_, _, i, t| if t <= i { 0.0 } else { f64::NEG_INFINITY });
    let config = SdpaConfig { causal: true, ..SdpaConfig::default() };
    for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &config)) {
        assert!(relative_error(out, &want) < TOLERANCE, "{isa}");
    }
}

#[test]
fn masks_broadcast_over_batch_heads_and_queries() {
    let case = Case { batch: 2, heads: 2, kv_heads: 2, queries: 37, keys: 41, width: 16 };
    let inputs = case.inputs();
    for shape in [[1, 1, 1, 41], [2, 1, 1, 41], [1, 2, 37, 41], [2, 2, 37, 41]] {
        let mut mask = values(shape.iter().product(), 4);
        mask.iter_mut().skip(2).step_by(3).for_each(|m| *m = f32::NEG_INFINITY);
        let view = View::contiguous(&mask, shape).unwrap();
        let strides = view.broadcast([2, 2, 37, 41]).unwrap().strides();
        let want = case.exact(&inputs, |b, h, i, t| {
            f64::from(mask[b * strides[0] + h * strides[1] + i * strides[2] + t * strides[3]])
        });
        let config = SdpaConfig { mask: Some(view), ..SdpaConfig::default() };
        for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &config)) {
            assert!(relative_error(out, &want) < TOLERANCE, "{isa} {shape:?}");
        }
    }
}

#[test]
fn a_fully_masked_row_gives_zeros_and_huge_masks_are_safe() {
    let case = Case { batch: 1, heads: 1, kv_heads: 1, queries: 3, keys: 40, width: 8 };
    let inputs = case.inputs();
    let mut mask = vec![0f32; 3 * 40];
    mask[..40].fill(f32::NEG_INFINITY);
    mask[40..80].fill(-1e9);
    mask[80] = 1e4;
    mask[81..].fill(-1e4);
    let config =
        SdpaConfig { mask: Some(View::contiguous(&mask, [1, 1, 3, 40]).unwrap()), ..SdpaConfig::default() };
    for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &config)) {
        assert_eq!(out[..8], [0.0; 8], "{isa}");
        assert!(out.iter().all(|v| v.is_finite()), "{isa}");
        let first: Vec<f64> = inputs[2][..8].iter().map(|v| v.to_f64()).collect();
        assert!(relative_error(out[16..].iter().copied(), &first) < TOLERANCE, "{isa}: one key takes all");
    }
}

#[test]
fn scores_of_ten_thousand_are_safe() {
    let case = Case { batch: 1, heads: 1, kv_heads: 1, queries: 5, keys: 33, width: 16 };
    let mut inputs = case.inputs();
    for x in &mut inputs[..2] {
        for v in x {
            *v = bf16::from_f32(v.to_f32() * 200.0);
        }
    }
    let want = case.exact(&inputs, |_, _, _, _| 0.0);
    for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &SdpaConfig::default())) {
        // Scores of 1e4 have an absolute error of 1e-3 in fp32.
        assert!(relative_error(out, &want) < 1e-2, "{isa}");
    }
}

#[test]
fn float32_inputs_keep_their_precision_at_every_level() {
    let shape = [1, 2, 40, 24];
    let [q, k, v] = [1, 2, 3].map(|seed| values(2 * 40 * 24, seed));
    let run = |engine: &Engine| {
        let mut out = vec![f32::NAN; q.len()];
        let [q, k, v] = [&q, &k, &v].map(|x| View::contiguous(x, shape).unwrap());
        let mut view = ViewMut::contiguous(&mut out, shape).unwrap();
        sdpa(engine, &q, &k, &v, &SdpaConfig::default(), &mut view).unwrap();
        out
    };
    let want: Vec<f64> = run(&Engine::new(Isa::Portable, 1).unwrap()).into_iter().map(f64::from).collect();
    for (isa, out) in at_every_level(run) {
        let error = relative_error(out, &want);
        assert!(error < 3e-6, "{isa}: {error}");
    }
}

#[test]
fn rows_with_gaps_are_the_rows_without() {
    let case = Case { batch: 1, heads: 2, kv_heads: 2, queries: 19, keys: 21, width: 10 };
    let inputs = case.inputs();
    let spread =
        inputs.each_ref().map(|x| x.iter().flat_map(|v| [*v, bf16::NAN, bf16::NAN]).collect::<Vec<_>>());
    let [q_shape, kv_shape] = case.shapes();
    let view = |x, [a, b, c, d]: [usize; 4]| {
        View::new(x, [a, b, c, d], [3 * b * c * d, 3 * c * d, 3 * d, 3]).unwrap()
    };
    let [q, k, v] = [view(&spread[0], q_shape), view(&spread[1], kv_shape), view(&spread[2], kv_shape)];
    let with_gaps = |engine: &Engine| {
        let mut out = vec![f32::NAN; inputs[0].len()];
        let mut view = ViewMut::contiguous(&mut out, q_shape).unwrap();
        sdpa(engine, &q, &k, &v, &SdpaConfig::default(), &mut view).unwrap();
        out
    };
    let dense = at_every_level(|engine| case.run(engine, &inputs, &SdpaConfig::default()));
    assert_eq!(at_every_level(with_gaps), dense);
}

#[test]
fn values_may_be_wider_and_narrower_than_keys() {
    let (queries, keys, width) = (35, 45, 16);
    let [q, k] = [(queries, 1), (keys, 2)].map(|(rows, seed)| to_bf16(&values(2 * rows * width, seed)));
    for value_width in [1, 8, 40] {
        let v = to_bf16(&values(2 * keys * value_width, 3));
        let [q, k, v] = [(&q, queries, width), (&k, keys, width), (&v, keys, value_width)]
            .map(|(x, rows, width)| View::contiguous(x, [1, 2, rows, width]).unwrap());
        let results = at_every_level(|engine| {
            let mut out = vec![f32::NAN; 2 * queries * value_width];
            let mut view = ViewMut::contiguous(&mut out, [1, 2, queries, value_width]).unwrap();
            sdpa(engine, &q, &k, &v, &SdpaConfig::default(), &mut view).unwrap();
            out
        });
        let portable: Vec<f64> = results[0].1.iter().map(|v| f64::from(*v)).collect();
        for (isa, out) in results {
            assert!(relative_error(out, &portable) < TOLERANCE, "{isa}, {value_width} columns");
        }
    }
}

#[test]
fn what_scratch_held_before_changes_nothing() {
    let case = Case { batch: 1, heads: 2, kv_heads: 1, queries: 21, keys: 21, width: 24 };
    let large = Case { batch: 1, heads: 2, kv_heads: 1, queries: 90, keys: 90, width: 72 };
    let (inputs, nan) = (case.inputs(), large.inputs().map(|x| vec![bf16::NAN; x.len()]));
    let causal = SdpaConfig { causal: true, ..SdpaConfig::default() };
    for config in [SdpaConfig::default(), causal] {
        let clean = at_every_level(|engine| case.run(engine, &inputs, &config));
        let after_nan = at_every_level(|engine| {
            large.run(engine, &nan, &config);
            case.run(engine, &inputs, &config)
        });
        assert_eq!(clean, after_nan);
        assert!(clean.iter().all(|(_, out)| out.iter().all(|v| v.is_finite())));
    }
}

/// Tiles of 16 rows by 32 queries: 19 of keys, 8 of columns. 4 steps of E, 10 of keys for each half of a probability; each
/// step two products.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn amx_does_as_few_products_as_there_are_tiles() {
    use crate::amx_emulation::Counts;
    if !crate::testing::needs_amx_emulation() {
        println!("skipped: this CPU has AMX, or no AVX-512");
        return;
    }
    let case = Case { batch: 1, heads: 2, kv_heads: 1, queries: 33, keys: 296, width: 128 };
    let inputs = case.inputs();
    let engine = Engine::new(Isa::Avx512, 1).unwrap().with_kernels(crate::kernels::AMX_EMULATED);
    let done = Counts::of(|| drop(case.run(&engine, &inputs, &SdpaConfig::default())));
    let blocks = 4;
    assert_eq!((done.configurations, done.releases), (1, 1));
    assert_eq!(done.products, blocks * (19 * 4 + 8 * 10 * 2) * 2);
}

#[test]
fn scales_of_0_and_below_are_scales() {
    let case = Case { batch: 1, heads: 1, kv_heads: 1, queries: 40, keys: 40, width: 8 };
    let inputs = case.inputs();
    let mut negated = inputs.clone();
    negated[0].iter_mut().for_each(|q| *q = -*q);
    let scaled = |scale| SdpaConfig { scale: Some(scale), causal: true, ..SdpaConfig::default() };
    for (isa, below) in at_every_level(|engine| case.run(engine, &negated, &scaled(-0.5))) {
        let above = at_every_level(|engine| case.run(engine, &inputs, &scaled(0.5)));
        let (_, above) = above.iter().find(|(name, _)| *name == isa).unwrap();
        let above: Vec<f64> = above.iter().map(|v| f64::from(*v)).collect();
        assert!(relative_error(below, &above) < TOLERANCE, "{isa}");
    }
    for (isa, out) in at_every_level(|engine| case.run(engine, &inputs, &scaled(0.0))) {
        let first: Vec<f64> = inputs[2][..8].iter().map(|v| v.to_f64()).collect();
        assert!(relative_error(out[..8].iter().copied(), &first) < TOLERANCE, "{isa}: one key is all");
    }
}

#[test]
fn a_mask_of_zeros_changes_no_byte() {
    let case = Case { batch: 1, heads: 2, kv_heads: 1, queries: 33, keys: 45, width: 24 };
    let inputs = case.inputs();
    let mask = vec![0f32; 45];
    let config =
        SdpaConfig { mask: Some(View::contiguous(&mask, [1, 1, 1, 45]).unwrap()), ..SdpaConfig::default() };
    let plain = at_every_level(|engine| case.run(engine, &inputs, &SdpaConfig::default()));
    assert_eq!(plain, at_every_level(|engine| case.run(engine, &inputs, &config)));
}

#[test]
fn padded_keys_are_not_read_and_change_nothing() {
    let case = Case { batch: 2, heads: 2, kv_heads: 1, queries: 20, keys: 50, width: 24 };
    let inputs = case.inputs();
    let valid = [0, 43];
    let want = case.exact(&inputs, |b, _, _, t| if t < valid[b] { 0.0 } else { f64::NEG_INFINITY });
    let mut poisoned = inputs.clone();
    for x in &mut poisoned[1..] {
        for (b, x) in x.chunks_exact_mut(50 * 24).enumerate() {
            x[valid[b] * 24..].fill(bf16::NAN);
        }
    }
    let config = SdpaConfig { kv_valid: Some(&valid), ..SdpaConfig::default() };
    for (isa, out) in at_every_level(|engine| case.run(engine, &poisoned, &config)) {
        assert!(relative_error(out.iter().copied(), &want) < TOLERANCE, "{isa}");
        assert!(out[..2 * 20 * 24].iter().all(|v| *v == 0.0));
    }
    let mut mask = vec![0f32; 2 * 50];
    mask.chunks_exact_mut(50).zip(valid).for_each(|(m, n)| m[n..].fill(f32::NEG_INFINITY));
    let masked =
        SdpaConfig { mask: Some(View::contiguous(&mask, [2, 1, 1, 50]).unwrap()), ..SdpaConfig::default() };
    let engine = Engine::new(Isa::detect(), 2).unwrap();
    assert_eq!(
        case.run(&engine, &inputs, &masked),
        case.run(&engine, &inputs, &config),
        "a mask is as good as a length"
    );
}

#[test]
fn heads_are_read_from_and_written_to_merged_rows() {
    let case = Case { batch: 1, heads: 3, kv_heads: 3, queries: 10, keys: 10, width: 16 };
    let inputs = case.inputs();
    // One [S, 3 * H * E] buffer, as a fused projection leaves it.
    let mut fused = vec![bf16::NAN; 10 * 3 * 48];
    for (part, x) in inputs.iter().enumerate() {
        for (i, v) in x.iter().enumerate() {
            let (h, s, e) = (i / 160, i / 16 % 10, i % 16);
            fused[s * 144 + part * 48 + h * 16 + e] = *v;
        }
    }
    let part = |i: usize| View::new(&fused[i * 48..], [1, 3, 10, 16], [0, 16, 144, 1]).unwrap();
    let merged = at_every_level(|engine| {
        let mut merged = vec![0f32; 10 * 48];
        let mut out =
            ViewMut::contiguous(&mut merged, [1, 10, 3, 16]).unwrap().permute([0, 2, 1, 3]).unwrap();
        sdpa(engine, &part(0), &part(1), &part(2), &SdpaConfig::default(), &mut out).unwrap();
        merged
    });
    let apart = at_every_level(|engine| case.run(engine, &inputs, &SdpaConfig::default()));
    for ((level, apart), (_, merged)) in apart.iter().zip(&merged) {
        for (i, v) in apart.iter().enumerate() {
            assert_eq!(*v, merged[i / 16 % 10 * 48 + i / 160 * 16 + i % 16], "{level}");
        }
    }
}

#[test]
fn mistakes_are_errors() {
    let engine = Engine::new(Isa::Portable, 1).unwrap();
    let data = values(4096, 1);
    let view = |shape| View::contiguous(&data, shape).unwrap();
    let mut buf = vec![0f32; 4096];
    let q = view([1, 4, 8, 16]);
    let kv = view([1, 2, 9, 16]);
    let mut run = |k: View<'_>, v: View<'_>, config: &SdpaConfig<'_>| {
        let mut out = ViewMut::contiguous(&mut buf, [1, 4, 8, 16]).unwrap();
        sdpa(&engine, &q, &k, &v, config, &mut out).is_err()
    };
    let plain = SdpaConfig::default();
    assert!(!run(kv, kv, &plain));
    assert!(run(view([1, 3, 9, 16]), view([1, 3, 9, 16]), &plain));
    assert!(run(kv, view([1, 2, 8, 16]), &plain));
    assert!(run(kv, view([1, 2, 9, 17]), &plain));
    assert!(run(kv, kv, &SdpaConfig { causal: true, ..plain }));
    assert!(run(kv, kv, &SdpaConfig { mask: Some(view([1, 1, 8, 8])), ..plain }));
    assert!(run(kv, kv, &SdpaConfig { kv_valid: Some(&[10]), ..plain }));
    assert!(run(kv, kv, &SdpaConfig { kv_valid: Some(&[1, 1]), ..plain }));
}
