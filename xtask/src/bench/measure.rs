//! Times of repeated work: on the wall, and on the CPUs.

use std::time::Instant;

use crate::quantile::{quantile, sorted};

/// One run, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Time {
    /// On the wall.
    pub(super) wall: f64,
    /// Of all threads of the process; 0 where `/proc` does not say.
    pub(super) cpu: f64,
}

/// Runs of one case.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<Time>);

impl Times {
    /// `work` once to warm up, then `count` times.
    ///
    /// # Errors
    /// The first of `work`.
    pub(super) fn of<E>(count: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        work()?;
        let mut times = Self::default();
        for _ in 0..count {
            let clock = Clock::start();
            work()?;
            times.push(clock.stop());
        }
        Ok(times)
    }

    pub(super) fn push(&mut self, time: Time) {
        self.0.push(time);
    }

    /// Wall times, in ascending order.
    pub(super) fn wall(&self) -> Vec<f64> {
        sorted(self.0.iter().map(|time| time.wall))
    }

    /// The median wall time.
    pub(super) fn median(&self) -> f64 {
        quantile(&self.wall(), 0.5)
    }

    /// The mean of the time that each of `threads` was on a CPU. The kernel counts in ticks of some milliseconds: where all runs
    /// together are too short for them, or where the work was a card's, which has no threads, it is not known.
    pub(super) fn busy(&self, threads: usize) -> Option<f64> {
        const SHORT_MS: f64 = 100.0;
        let cpu: f64 = self.0.iter().map(|time| time.cpu).sum();
        (threads > 0 && cpu > SHORT_MS).then(|| cpu / (threads * self.0.len()) as f64)
    }

    /// [`Times::busy`] of parts of the runs `whole`, which have their share of its CPU time: known where that of `whole` is.
    pub(super) fn busy_in(&self, whole: &Times, threads: usize) -> Option<f64> {
        whole.busy(threads)?;
        let cpu: f64 = self.0.iter().map(|time| time.cpu).sum();
        (cpu > 0.0).then(|| cpu / (threads * self.0.len()) as f64)
    }
}

/// A running measurement.
#[derive(Debug)]
pub(super) struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { cpu: cpu_ms(), wall: Instant::now() }
    }

    pub(super) fn stop(&self) -> Time {
        let wall = self.wall.elapsed().as_secs_f64() * 1e3;
        Time { wall, cpu: cpu_ms() - self.cpu }
    }
}

/// CPU time of all living threads of this process.
fn cpu_ms() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = |task: std::fs::DirEntry| -> Option<f64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    tasks.flatten().filter_map(nanoseconds).sum::<f64>() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warming_up_is_not_counted() {
        let mut calls = 0;
        let times = Times::of(3, || -> Result<(), ()> {
            calls += 1;
            Ok(())
        });
        assert_eq!((times.unwrap().wall().len(), calls), (3, 4));
    }

    #[test]
    fn cpu_time_is_per_thread_and_unknown_of_short_runs() {
        let mut times = Times::default();
        times.push(Time { wall: 60.0, cpu: 90.0 });
        assert_eq!((times.busy(2), times.median()), (None, 60.0));
        times.push(Time { wall: 80.0, cpu: 110.0 });
        assert_eq!((times.busy(2), times.busy(0)), (Some(50.0), None));
    }

    #[test]
    fn cpu_time_of_parts_is_known_where_that_of_the_whole_is() {
        let (mut whole, mut part) = (Times::default(), Times::default());
        for cpu in [90.0, 110.0] {
            assert_eq!(part.busy_in(&whole, 2), None);
            whole.push(Time { wall: 60.0, cpu });
            part.push(Time { wall: 6.0, cpu: cpu / 10.0 });
        }
        assert_eq!((part.busy(2), part.busy_in(&whole, 2)), (None, Some(5.0)));
    }
}
