//! The machine's limits, measured in the same run as what is held against them.

use anyhow::Result;
use tt_ops::{OpTime, Soft};
use tt_soft::memory::Pages;
use tt_soft::{AlignedBuf, Engine, limits};

use super::measure::Times;
use super::report::Report;
use super::results::Work;

/// Multiply-adds of each chain in one run: some tens of milliseconds, many ticks of the kernel's clock.
const STEPS: usize = 20_000_000;
/// More than any cache that a guest can count on.
const READ_BYTES: usize = 512 << 20;
const RUNS: usize = 7;

/// Of a run: CPU time of each thread, so that other work on the machine lowers no limit; on the wall where it is not known.
fn time(times: &Times, threads: usize) -> f64 {
    times.busy(threads).unwrap_or_else(|| times.median())
}

/// What the device's threads can do together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Floating-point operations per millisecond.
    flops_per_ms: f64,
    /// Bytes per millisecond.
    bytes_per_ms: f64,
}

impl Limits {
    /// Measures with one thread and with all of the device's.
    pub(super) fn measure(device: &Soft, report: &mut Report) -> Result<Self> {
        let mut measured = Self { flops_per_ms: 0.0, bytes_per_ms: 0.0 };
        let mut counts = vec![1, device.threads()];
        counts.dedup();
        let engines = counts.iter().map(|&threads| Engine::new(device.isa(), threads));
        let engines: Vec<Engine> = engines.collect::<Result<_, _>>()?;
        for engine in &engines {
            let (kind, threads) = (limits::multiply_add_name(engine), engine.threads());
            let times = Times::of(RUNS, || limits::multiply_add(engine, STEPS))?;
            let flops = (STEPS * limits::flops_per_step(engine) * threads) as f64;
            measured.flops_per_ms = flops / time(&times, threads);
            let name = format!("limit/{kind}/{}/{threads}t", device.isa());
            report.values(name, "GF/s", &[measured.flops_per_ms / 1e6]);
        }
        // weights lie in huge pages, so that these come last and are what counts
        for (name, pages) in [("read_small_pages", Pages::Small), ("read", Pages::Huge)] {
            let mut memory = AlignedBuf::zeroed_in(READ_BYTES, pages);
            // pages that were never written would all be the one page of zeros
            memory.as_bytes_mut().fill(1);
            for engine in &engines {
                let threads = engine.threads();
                let times = Times::of(RUNS, || limits::read(engine, &memory).map(drop))?;
                measured.bytes_per_ms = READ_BYTES as f64 / time(&times, threads);
                let name = format!("limit/{name}/512MiB/{threads}t");
                report.values(name, "GB/s", &[measured.bytes_per_ms / 1e6]);
            }
        }
        Ok(measured)
    }

    /// This much arithmetic and this much memory, with the least time for them.
    pub(super) fn work(&self, flops: f64, bytes: f64) -> Work {
        Work { flops, bytes, floor_ms: (flops / self.flops_per_ms).max(bytes / self.bytes_per_ms) }
    }

    /// All `ops`, one after the other.
    pub(super) fn of_ops<'a>(&self, ops: impl IntoIterator<Item = &'a OpTime>) -> Work {
        let works = ops.into_iter().map(|op| self.work(op.flops as f64, op.bytes as f64));
        works.fold(Work::default(), Work::and)
    }
}
