//! Results as a table while they come, and as JSON at the end.

use anyhow::Result;

use super::machine::Machine;
use super::measure::Times;
use super::results::{Results, Row, Work};
use crate::quantile::quantile;
use crate::say::say;

/// All results so far.
#[derive(Debug)]
pub(super) struct Report {
    results: Results,
    only: Option<String>,
    without: Option<String>,
}

impl Report {
    pub(super) fn new(machine: Machine, only: Option<String>, without: Option<String>) -> Self {
        Self { results: Results { machine, results: Vec::new() }, only, without }
    }

    /// Is a result of this name asked for?
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|pattern| name.contains(pattern)) && !self.leaves_out(name)
    }

    /// Is a result asked for whose name begins like this?
    pub(super) fn wants_some(&self, prefix: &str) -> bool {
        if self.leaves_out(prefix) {
            return false;
        }
        let Some(pattern) = self.only.as_deref() else { return true };
        let family = pattern.split_once('/').map_or(pattern, |(family, _)| family);
        !FAMILIES.contains(&family) || prefix.starts_with(family)
    }

    fn leaves_out(&self, name: &str) -> bool {
        self.without.as_deref().is_some_and(|begin| name.starts_with(begin))
    }

    pub(super) fn threads(&self) -> usize {
        self.results.machine.threads()
    }

    pub(super) fn print_head(&self) {
        say!("{}", self.results.machine.line());
        say!(
            "{:<52} {:>10} {:>10} {:>10} {:>10} {:>5} {:>10} {:>6}",
            "",
            "median",
            "p95",
            "p99",
            "max",
            "n",
            "busy",
            "roof"
        );
    }

    /// Times in milliseconds, and what had to be done in each.
    pub(super) fn times(&mut self, name: String, times: &Times, work: Option<Work>) {
        self.times_with(self.threads(), name, times, work);
    }

    /// The same with another number of threads than the report's.
    pub(super) fn times_with(&mut self, threads: usize, name: String, times: &Times, work: Option<Work>) {
        self.row(name, "ms", &times.wall(), work, times.busy(threads));
    }

    /// Times of a stage of the runs `whole`, judged by CPU time if and only if those are.
    pub(super) fn times_in(&mut self, whole: &Times, name: String, times: &Times, work: Option<Work>) {
        self.row(name, "ms", &times.wall(), work, times.busy_in(whole, self.threads()));
    }

    /// Ascending values of any unit.
    pub(super) fn values(&mut self, name: String, unit: &str, values: &[f64]) {
        self.row(name, unit, values, None, None);
    }

    /// Figures that were measured elsewhere, and how many values they are of.
    pub(super) fn figures(&mut self, name: String, unit: &str, figures: [f64; 4], n: usize) {
        self.add(Row::new(name, unit, figures, n));
    }

    fn row(&mut self, name: String, unit: &str, values: &[f64], work: Option<Work>, busy: Option<f64>) {
        let figures = [0.5, 0.95, 0.99, 1.0].map(|at| quantile(values, at));
        let mut row = Row::new(name, unit, figures, values.len());
        let time = busy.unwrap_or(row.median).max(f64::MIN_POSITIVE);
        row.roofline_share = work.map(|work| work.floor_ms / time);
        row.busy = busy;
        row.work = work;
        if values.len() > 1 {
            row.samples = values.iter().copied().map(rounded).collect();
        }
        self.add(row);
    }

    fn add(&mut self, row: Row) {
        if !self.wants(&row.name) {
            return;
        }
        let Row { name, unit, median, p95, p99, max, n, .. } = &row;
        let busy = row.busy.map_or_else(String::new, |v| format!("{v:.3}"));
        let percent = row.roofline_share.map_or_else(String::new, |s| format!("{:.0}%", 100.0 * s));
        say!(
            "{name:<52} {median:>10.3} {p95:>10.3} {p99:>10.3} {max:>10.3} {n:>5} {busy:>10} {percent:>6} {unit}"
        );
        self.results.results.push(row);
    }

    /// All results, and the machine that they are of.
    pub(super) fn results(&self) -> &Results {
        &self.results
    }

    /// `{"machine": …, "results": […]}`.
    pub(super) fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(&self.results)?)
    }
}

/// To the microsecond of a millisecond, which is what files of samples need.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// What names begin with.
const FAMILIES: [&str; 10] =
    ["limit", "op", "load", "device", "stage", "predict", "host", "memory", "scale", "server"];
