//! Kernels of `tt-soft` at the model's shapes: `linear` per weight format, attention, norm, activation, packing.
//!
//! `cargo bench -p benches --bench kernels`. `GR00T_SOFT_ISA` and `GR00T_THREADS` choose the engine.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use half::bf16;
use tt_soft::{
    Activation, Engine, Epilogue, Norm, PackedWeight, SdpaConfig, Unary, View, ViewMut, WeightFormat,
    WeightOrder,
};

/// What is benched, M, K, N: vision, LLM and DiT projections.
const LINEAR: [(&str, [usize; 3]); 4] = [
    ("vision qkv", [256, 1152, 1152]),
    ("vision fc2", [256, 4304, 1152]),
    ("llm gate", [296, 2048, 6144]),
    ("dit ff1", [49, 1536, 6144]),
];
/// What is benched, heads, key heads, queries, keys, head dimension.
const ATTENTION: [(&str, [usize; 5]); 4] = [
    ("vision", [16, 16, 256, 256, 72]),
    ("llm", [16, 8, 296, 296, 128]),
    ("dit self", [32, 32, 49, 49, 48]),
    ("dit cross", [32, 32, 49, 296, 48]),
];

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7919 % 1013) as f32 / 1013.0 - 0.5).collect()
}

fn to_bf16(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|v| bf16::from_f32(*v)).collect()
}

fn linear(c: &mut Criterion) {
    let engine = Engine::from_env().unwrap();
    for (name, [m, k, n]) in LINEAR {
        let mut group = c.benchmark_group(format!("linear {name} [{m}, {k}, {n}]"));
        group.throughput(Throughput::Elements((2 * m * k * n) as u64)).sample_size(10);
        let (x, w) = (to_bf16(&values(m * k)), values(n * k));
        let x = View::contiguous(&x, [1, 1, m, k]).unwrap();
        let mut out = vec![bf16::ZERO; m * n];
        for format in WeightFormat::ALL {
            let source = View::contiguous(&w, [1, 1, n, k]).unwrap();
            let weight = PackedWeight::pack(&engine, &[source], WeightOrder::OutIn, format).unwrap();
            group.bench_function(format.name(), |b| {
                b.iter(|| {
                    let mut out = ViewMut::contiguous(&mut out, [1, 1, m, n]).unwrap();
                    tt_soft::linear(&engine, &x, &weight, &Epilogue::default(), &mut out).unwrap();
                });
            });
        }
        group.finish();
    }
}

fn attention(c: &mut Criterion) {
    let engine = Engine::from_env().unwrap();
    let mut group = c.benchmark_group("attention");
    for (name, [heads, kv_heads, queries, keys, width]) in ATTENTION {
        let (q, kv) = (to_bf16(&values(heads * queries * width)), to_bf16(&values(kv_heads * keys * width)));
        let q_view = View::contiguous(&q, [1, heads, queries, width]).unwrap();
        let kv = View::contiguous(&kv, [1, kv_heads, keys, width]).unwrap();
        let mut out = vec![bf16::ZERO; q.len()];
        group.throughput(Throughput::Elements((4 * heads * queries * keys * width) as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut out = ViewMut::contiguous(&mut out, [1, heads, queries, width]).unwrap();
                tt_soft::sdpa(&engine, &q_view, &kv, &kv, &SdpaConfig::default(), &mut out).unwrap();
            });
        });
    }
    group.finish();
}

fn rows(c: &mut Criterion) {
    const SHAPE: [usize; 4] = [1, 1, 256, 1152];
    let engine = Engine::from_env().unwrap();
    let (x, weight) = (values(256 * 1152), values(1152));
    let view = View::contiguous(&x, SHAPE).unwrap();
    let mut out = vec![bf16::ZERO; x.len()];
    let mut group = c.benchmark_group("rows [256, 1152]");
    group.throughput(Throughput::Elements(x.len() as u64));
    let norm = Norm { weight: Some(&weight), bias: Some(&weight), eps: 1e-6 };
    group.bench_function("layer_norm", |b| {
        b.iter(|| {
            let mut out = ViewMut::contiguous(&mut out, SHAPE).unwrap();
            tt_soft::layer_norm(&engine, &view, &norm, &mut out).unwrap();
        });
    });
    for f in [Activation::GeluTanh, Activation::GeluErf, Activation::Silu] {
        group.bench_function(format!("{f:?}"), |b| {
            b.iter(|| {
                let mut out = ViewMut::contiguous(&mut out, SHAPE).unwrap();
                tt_soft::unary(&engine, Unary::Activation(f), &view, &mut out).unwrap();
            });
        });
    }
    group.finish();
}

fn packing(c: &mut Criterion) {
    let engine = Engine::from_env().unwrap();
    let (k, n) = (2048, 2048);
    let w = to_bf16(&values(n * k));
    let mut group = c.benchmark_group("pack [2048, 2048]");
    group.throughput(Throughput::Elements((n * k) as u64)).sample_size(10);
    for format in WeightFormat::ALL {
        group.bench_function(format.name(), |b| {
            let source = View::contiguous(&w, [1, 1, n, k]).unwrap();
            let pack = |source| PackedWeight::pack(&engine, &[source], WeightOrder::OutIn, format).unwrap();
            b.iter_batched(|| source, pack, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, linear, attention, rows, packing);
criterion_main!(benches);
