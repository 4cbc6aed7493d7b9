//! Results as a table while they come, and as JSON at the end.

use anyhow::Result;
use serde::Serialize;

use super::machine::Machine;
use super::measure::{Times, quantile};
use crate::say::say;

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
struct Row {
    name: String,
    unit: &'static str,
    median: f64,
    p95: f64,
    p99: f64,
    max: f64,
    n: usize,
    /// Least time that the machine's limits allow, divided by `busy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    roofline_share: Option<f64>,
    /// The mean time that each thread was on a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<f64>,
}

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Machine,
    results: Vec<Row>,
    #[serde(skip)]
    only: Option<String>,
}

impl Report {
    pub(super) fn new(machine: Machine, only: Option<String>) -> Self {
        Self { machine, results: Vec::new(), only }
    }

    /// Is a result of this name asked for?
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|pattern| name.contains(pattern))
    }

    /// Is a result asked for whose name begins like this?
    pub(super) fn wants_some(&self, prefix: &str) -> bool {
        let Some(pattern) = self.only.as_deref() else { return true };
        let family = pattern.split_once('/').map_or(pattern, |(family, _)| family);
        !FAMILIES.contains(&family) || prefix.starts_with(family)
    }

    pub(super) fn threads(&self) -> usize {
        self.machine.threads()
    }

    pub(super) fn print_head(&self) {
        say!("{}", self.machine.line());
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

    /// Times in milliseconds; `floor_ms` is the least that the limits allow.
    pub(super) fn times(&mut self, name: String, times: &Times, floor_ms: Option<f64>) {
        let busy = times.busy(self.threads());
        let share = floor_ms.map(|floor| floor / busy.max(f64::MIN_POSITIVE));
        self.row(name, "ms", &times.wall(), share, Some(busy));
    }

    /// Ascending values of any unit.
    pub(super) fn values(&mut self, name: String, unit: &'static str, values: &[f64]) {
        self.row(name, unit, values, None, None);
    }

    fn row(
        &mut self,
        name: String,
        unit: &'static str,
        values: &[f64],
        share: Option<f64>,
        busy: Option<f64>,
    ) {
        if !self.wants(&name) {
            return;
        }
        let [median, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|at| quantile(values, at));
        let show = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
        let percent = share.map_or_else(String::new, |s| format!("{:.0}%", 100.0 * s));
        say!(
            "{name:<52} {median:>10.3} {p95:>10.3} {p99:>10.3} {max:>10.3} {:>5} {:>10} {percent:>6} {unit}",
            values.len(),
            show(busy)
        );
        let n = values.len();
        self.results.push(Row { name, unit, median, p95, p99, max, n, roofline_share: share, busy });
    }

    /// `{"machine": …, "results": […]}`.
    pub(super) fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }
}

/// What names begin with.
const FAMILIES: [&str; 7] = ["limit", "op", "load", "stage", "predict", "host", "memory"];
