//! Kernels of `tt-soft` at the model's shapes (the cases of `cargo xtask bench`), activations and packing.
//!
//! `cargo bench -p benches --bench kernels`. `GR00T_SOFT_ISA` and `GR00T_THREADS` choose the engine.

#![allow(clippy::unwrap_used, missing_docs)]

use benches::cases;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gr00t_host::ModelConfig;
use gr00t_model::DtypePolicy;
use half::bf16;
use tt_soft::{Activation, Engine, PackedWeight, Unary, View, ViewMut, WeightFormat, WeightOrder};

fn kernels(c: &mut Criterion) {
    let engine = Engine::from_env().unwrap();
    let mut group = c.benchmark_group("op");
    group.sample_size(10);
    for case in cases(&ModelConfig::n1_5(), DtypePolicy::MixedDit) {
        let mut prepared = None;
        let work = if case.kind.flops() > 0.0 { case.kind.flops() as u64 } else { 1 };
        group.throughput(Throughput::Elements(work));
        group.bench_function(&case.name, |b| {
            // made only where the case was asked for
            let prepared = prepared.get_or_insert_with(|| case.prepare(&engine).unwrap());
            b.iter(|| prepared.run(&engine).unwrap());
        });
    }
    group.finish();
}

fn activations(c: &mut Criterion) {
    const SHAPE: [usize; 4] = [1, 1, 256, 1152];
    let engine = Engine::from_env().unwrap();
    let x: Vec<f32> = (0..256 * 1152).map(|i| (i * 7919 % 1013) as f32 / 1013.0 - 0.5).collect();
    let view = View::contiguous(&x, SHAPE).unwrap();
    let mut out = vec![bf16::ZERO; x.len()];
    let mut group = c.benchmark_group("unary [256, 1152]");
    group.throughput(Throughput::Elements(x.len() as u64));
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
    let w: Vec<bf16> = (0..n * k).map(|i| bf16::from_f32((i * 7919 % 1013) as f32 / 1013.0 - 0.5)).collect();
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

criterion_group!(benches, kernels, activations, packing);
criterion_main!(benches);
