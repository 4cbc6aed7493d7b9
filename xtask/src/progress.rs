//! Progress of work that takes over a second: a bar on a terminal, a plain line per finished part elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ndarray::ArrayView2;
use reference::{Observer, Part};

/// A finished part that took less than this gets no line of its own.
const WORTH_A_LINE: Duration = Duration::from_secs(1);

/// One bar for a row of parts. Everything goes to standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    /// Nothing shown yet.
    pub(crate) fn new() -> Self {
        let plain = !stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Self { bar, plain }
    }

    /// `done` of `total` units of `what`.
    pub(crate) fn set(&self, what: &str, done: u64, total: u64) {
        if self.bar.message() != what {
            self.bar.reset();
            self.bar.set_message(what.to_string());
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// `what` is finished.
    pub(crate) fn finished(&self, what: &str, elapsed: Duration) {
        if self.plain && elapsed >= WORTH_A_LINE {
            eprintln!("{what}: {:.1} s", elapsed.as_secs_f64());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Watches a run of the reference: shows progress, keeps the parts' times, and hands stages on.
pub(crate) struct Watch<'a> {
    progress: &'a Progress,
    stage: &'a mut dyn FnMut(&str, ArrayView2<'_, f32>),
    /// Part → wall time, weights included, in the order of the run.
    pub(crate) times: Vec<(Part, Duration)>,
}

impl<'a> Watch<'a> {
    /// Hands stages to `stage`.
    pub(crate) fn new(progress: &'a Progress, stage: &'a mut dyn FnMut(&str, ArrayView2<'_, f32>)) -> Self {
        Self { progress, stage, times: Vec::new() }
    }
}

impl Observer for Watch<'_> {
    fn stage(&mut self, name: &str, tensor: ArrayView2<'_, f32>) {
        (self.stage)(name, tensor);
    }

    fn progress(&mut self, part: Part, done: usize, total: usize) {
        self.progress.set(part.name(), done as u64, total as u64);
    }

    fn finished(&mut self, part: Part, elapsed: Duration) {
        self.progress.finished(part.name(), elapsed);
        self.times.push((part, elapsed));
    }
}
