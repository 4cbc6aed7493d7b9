//! Products and attention of `tt-soft`, candle (whose float32 products are `gemm`'s) and faer, all CPUs each.
//!
//! `cargo bench --manifest-path benches/peers/Cargo.toml`; `GR00T_THREADS` and `RAYON_NUM_THREADS` limit the threads.
//! With `PEERS_CLOCK=cpu` times are CPU time per thread instead of wall time, for a machine that does other things as well.

#![allow(missing_docs)]

use std::rc::Rc;
use std::time::{Duration, Instant};

use benches::{Kind, cases};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use gr00t_host::ModelConfig;
use gr00t_model::DtypePolicy;
use peers::{Contestant, attention_in_f64, attentions, product_in_f64, products, relative_rms};
use rustix::time::{ClockId, clock_gettime};
use tt_soft::Engine;

/// Cases of the model that are compared: one product with many rows and one with few of each kind, two attentions.
const PLACES: [&str; 6] = ["vision.fc1", "llm.down", "adapter.ff1", "dit.ff1", "sdpa/vision", "sdpa/adapter"];

/// Every so many rows of a product are computed in f64.
const STEP: usize = 16;

fn peers(c: &mut Criterion) {
    let engine = Rc::new(Engine::from_env().expect("an engine"));
    let clock = match std::env::var("PEERS_CLOCK").as_deref() {
        Ok("cpu") => Clock::Cpu(engine.threads() as u32),
        Ok(other) => panic!("PEERS_CLOCK is {other:?}, cpu or nothing was expected"),
        Err(_) => Clock::Wall,
    };
    println!("{} threads, {}", engine.threads(), engine.isa());
    for case in cases(&ModelConfig::n1_5(), DtypePolicy::Bf16) {
        let Some(place) = PLACES.iter().find(|place| case.name.contains(*place)) else { continue };
        let (contestants, wanted, compared) = match case.kind {
            Kind::Linear { shape, .. } => {
                let row = move |at: usize| (at / shape[2]).is_multiple_of(STEP);
                let wanted = product_in_f64(shape, STEP);
                (products(&engine, shape), wanted, Box::new(row) as Box<dyn Fn(usize) -> bool>)
            }
            Kind::Attention { shape: [heads, _, queries, keys, width], .. } => {
                let shape = [heads, queries, keys, width];
                (attentions(&engine, shape), attention_in_f64(shape), Box::new(|_| true) as _)
            }
            _ => continue,
        };
        let shape = case.name.rsplit('/').next().unwrap_or_default();
        let mut group = c.benchmark_group(format!("{place} {shape}"));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2));
        group.throughput(Throughput::Elements(case.kind.flops() as u64));
        for contestant in contestants.expect("contestants") {
            measure(&mut group, contestant, clock, &wanted, &compared);
        }
        group.finish();
    }
}

/// What times are of.
#[derive(Clone, Copy)]
enum Clock {
    Wall,
    /// CPU time of the process, divided by its threads.
    Cpu(u32),
}

impl Clock {
    fn time(self, work: impl FnOnce()) -> Duration {
        let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("after 0");
        let (wall_before, cpu_before) = (Instant::now(), cpu());
        work();
        match self {
            Self::Wall => wall_before.elapsed(),
            Self::Cpu(threads) => cpu().saturating_sub(cpu_before) / threads,
        }
    }
}

/// Times a contestant whose result is right.
fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    mut contestant: Contestant,
    clock: Clock,
    wanted: &[f64],
    compared: &dyn Fn(usize) -> bool,
) {
    let name = contestant.name;
    contestant.call.run().expect(name);
    let result = contestant.call.result().expect(name).into_iter().enumerate();
    let result: Vec<f32> = result.filter_map(|(at, value)| compared(at).then_some(value)).collect();
    let error = relative_rms(&result, wanted);
    println!("{name}: relative rms error {error:.1e}, at most {:.0e}", contestant.bound);
    assert!(error <= contestant.bound, "{name}: relative rms error {error:e}");
    group.bench_function(name, |b| {
        b.iter_custom(|times| clock.time(|| (0..times).for_each(|_| contestant.call.run().expect(name))));
    });
}

criterion_group!(benches, peers);
criterion_main!(benches);
