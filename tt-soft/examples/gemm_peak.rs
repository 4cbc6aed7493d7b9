//! Speed of `linear` beside the peak of the multiply-adds that it uses, measured in the same run on the same engine.
//!
//! `cargo run --release -p tt-soft --example gemm_peak [isa …] [fp32]`: for each level (`fp32`: without `vdpbf16ps` and AMX), 1
//! and 2 threads, the shapes of the model's stages; the median of several runs, with warm weights. Time is CPU time per thread,
//! so that other work on the machine disturbs it little; the waiting of an idle thread counts for its first microseconds only.

use std::hint::black_box;
use tt_soft::{
    Engine, Epilogue, Isa, PackedWeight, View, ViewMut, WeightFormat, WeightOrder, limits, linear,
};

/// M, K, N.
const SHAPES: [[usize; 3]; 5] =
    [[256, 1152, 1152], [256, 4304, 1152], [296, 2048, 6144], [49, 1536, 6144], [1, 2048, 6144]];
const RUNS: usize = 7;

fn main() -> Result<(), tt_soft::Error> {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| a != "fp32").collect();
    let fp32 = std::env::args().any(|a| a == "fp32");
    let levels =
        Isa::available().into_iter().filter(|isa| asked.is_empty() || asked.iter().any(|a| a == isa.name()));
    for isa in levels {
        for threads in [1, 2] {
            let mut engine = Engine::new(isa, threads)?;
            if fp32 {
                engine = engine.with_fp32_products();
            }
            let (peak, name) = (peak_gflops(&engine)?, limits::multiply_add_name(&engine));
            println!("{isa} {threads} thread(s): {name} peak {peak:.0} GF/s");
            for shape in SHAPES {
                for format in [WeightFormat::Bf16, WeightFormat::Bfp8B] {
                    let speed = linear_gflops(&engine, shape, format)?;
                    println!(
                        "  {shape:?} {:10} {speed:7.1} GF/s  {:5.1} %",
                        format.name(),
                        100.0 * speed / peak
                    );
                }
            }
        }
    }
    Ok(())
}

fn linear_gflops(
    engine: &Engine,
    [m, k, n]: [usize; 3],
    format: WeightFormat,
) -> Result<f64, tt_soft::Error> {
    let values = |len: usize| (0..len).map(|i| (i * 7919 % 1013) as f32 / 1013.0 - 0.5).collect::<Vec<_>>();
    let (w, x) = (values(n * k), values(m * k).into_iter().map(half::bf16::from_f32).collect::<Vec<_>>());
    let source = View::contiguous(&w, [1, 1, n, k])?;
    let weight = PackedWeight::pack(engine, &[source], WeightOrder::OutIn, format)?;
    let mut out = vec![half::bf16::ZERO; m * n];
    let x = View::contiguous(&x, [1, 1, m, k])?;
    let mut seconds = [0.0; RUNS];
    for time in &mut seconds {
        let start = cpu_seconds();
        let mut view = ViewMut::contiguous(&mut out, [1, 1, m, n])?;
        linear(engine, &x, &weight, &Epilogue::default(), &mut view)?;
        *time = cpu_seconds() - start;
    }
    black_box(out);
    let median = median(seconds);
    Ok(2e-9 * (m * k * n * engine.threads()) as f64 / median)
}

/// The multiply-adds that `linear` uses, on registers, on all threads.
fn peak_gflops(engine: &Engine) -> Result<f64, tt_soft::Error> {
    /// Long enough that a clock that counts in ticks sees it.
    const STEPS: usize = 10_000_000;
    let mut seconds = [0.0; RUNS];
    for time in &mut seconds {
        let start = cpu_seconds();
        limits::multiply_add(engine, STEPS)?;
        *time = cpu_seconds() - start;
    }
    let flops = (STEPS * limits::flops_per_step(engine) * engine.threads().pow(2)) as f64;
    Ok(1e-9 * flops / median(seconds))
}

fn median(mut seconds: [f64; RUNS]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

/// CPU time of all threads of the process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
