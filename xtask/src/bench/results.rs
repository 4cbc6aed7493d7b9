//! Results as they are kept: what `--json` writes, and what reports, checks and the README read.

use std::path::Path;

use anyhow::{Context, Result};
use gr00t_host::read_capped;
use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// Largest file of results that is read.
const MAX_BYTES: u64 = 64 << 20;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) median: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    pub(super) n: usize,
    /// Least time that the machine's limits allow, divided by `busy`, by the median where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) roofline_share: Option<f64>,
    /// The mean time that each thread was on a CPU, where the runs were long enough to know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) busy: Option<f64>,
    /// Arithmetic and memory of one run, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<Work>,
    /// Every value, in ascending order, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) samples: Vec<f64>,
}

/// What one run has to do at least.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Work {
    /// Floating-point operations.
    pub(super) flops: f64,
    /// Bytes that each op reads and writes, added up.
    pub(super) bytes: f64,
    /// The time that the limits allow, in milliseconds; of several ops their sum.
    pub(super) floor_ms: f64,
}

impl Work {
    /// One after the other.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            flops: self.flops + other.flops,
            bytes: self.bytes + other.bytes,
            floor_ms: self.floor_ms + other.floor_ms,
        }
    }
}

/// All results of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    pub(super) results: Vec<Row>,
}

impl Results {
    /// Reads what `--json` wrote.
    ///
    /// # Errors
    /// If it cannot be read or is not that.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        serde_json::from_slice(&read_capped(path, MAX_BYTES)?).with_context(shown)
    }

    /// The rows whose names begin with `prefix`.
    pub(super) fn of<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Row> {
        self.results.iter().filter(move |row| row.name.starts_with(prefix))
    }

    /// The limit of all threads together whose name begins with `prefix`: that of the most threads.
    pub(super) fn limit(&self, prefix: &str) -> Option<&Row> {
        self.results.iter().rfind(|row| row.name.starts_with(prefix))
    }

    /// The most arithmetic of all threads together.
    pub(super) fn peak(&self) -> Option<&Row> {
        self.results.iter().rfind(|row| row.name.starts_with("limit/") && row.unit == "GF/s")
    }
}

impl Row {
    /// Median, p95, p99 and the largest of `n` values; nothing else is known of them.
    pub(super) fn new(name: String, unit: &str, [median, p95, p99, max]: [f64; 4], n: usize) -> Self {
        Self {
            name,
            unit: unit.into(),
            median,
            p95,
            p99,
            max,
            n,
            roofline_share: None,
            busy: None,
            work: None,
            samples: Vec::new(),
        }
    }

    /// Whether a larger value is the better one.
    pub(super) fn more_is_better(&self) -> bool {
        matches!(self.unit.as_str(), "GF/s" | "GB/s" | "1/s")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of times, for tests of what reads rows.
    pub(in crate::bench) fn row(name: &str, median: f64) -> Row {
        let samples: Vec<f64> = (0..20).map(|i| median * (0.95 + 0.01 * f64::from(i))).collect();
        Row {
            name: name.into(),
            unit: "ms".into(),
            median,
            p95: median * 1.1,
            p99: median * 1.14,
            max: median * 1.14,
            n: samples.len(),
            roofline_share: Some(0.5),
            busy: Some(median * 0.9),
            work: Some(Work { flops: median * 1e8, bytes: median * 1e6, floor_ms: median * 0.45 }),
            samples,
        }
    }

    /// Results with a limit of each kind and a prediction of two stages.
    pub(in crate::bench) fn results() -> Results {
        let limit = |name: &str, unit: &str, value: f64| Row::new(name.into(), unit, [value; 4], 1);
        Results {
            machine: Machine::for_tests(),
            results: vec![
                limit("limit/vdpbf16ps/avx512/2t", "GF/s", 469.0),
                limit("limit/read/512MiB/2t", "GB/s", 63.0),
                row("op/linear/vision.qkv/bf16/256x64x192", 0.3),
                row("stage/vision/mixed_dit/mini/1view/s297", 10.0),
                row("stage/denoise/mixed_dit/mini/1view/s297", 20.0),
                row("predict/mixed_dit/mini/1view/s297", 31.0),
                limit("memory/resident/mixed_dit/mini", "MB", 120.0),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        std::fs::write(&path, serde_json::to_vec(&results()).unwrap()).unwrap();
        let read = Results::read(&path).unwrap();
        assert_eq!(read.results, results().results);
        assert_eq!(read.limit("limit/read/").map(|row| row.median), Some(63.0));
        std::fs::write(&path, "{}").unwrap();
        assert!(format!("{:#}", Results::read(&path).unwrap_err()).contains("results.json: missing field"));
    }
}
