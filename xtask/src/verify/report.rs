//! What `verify` found: one row per stage or group, a table for people, JSON for programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gr00t_host::OneLine;
use serde::Serialize;

/// Whether a row counts against its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Within its gate.
    Pass,
    /// Outside its gate, or not comparable.
    Fail,
    /// Shown, not judged.
    Info,
}

/// One stage of a case, or one group of a host folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Stage or group.
    pub(crate) name: String,
    /// The judgement.
    pub(crate) verdict: Verdict,
    /// Pearson correlation; absent where the expectation is constant, or where only equality counts.
    pub(crate) pcc: Option<f64>,
    /// Largest difference.
    pub(crate) max_abs: Option<f64>,
    /// Root mean square of the difference over that of the expectation.
    pub(crate) rel_rms: Option<f64>,
    /// Counts, gates and reasons.
    pub(crate) detail: String,
}

impl Row {
    /// A row without figures.
    pub(crate) fn new(name: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        let (name, detail) = (name.into(), detail.into());
        Self { name, verdict, pcc: None, max_abs: None, rel_rms: None, detail }
    }

    /// A row that fails for a reason that is not a number.
    pub(crate) fn fail(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(name, Verdict::Fail, why)
    }

    /// A row that is shown and not judged.
    pub(crate) fn info(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(name, Verdict::Info, what)
    }

    /// A row that passes only if all of `total` values are equal; none at all is a failure.
    pub(crate) fn equal(name: impl Into<String>, equal: usize, total: usize) -> Self {
        let verdict = if equal == total && total > 0 { Verdict::Pass } else { Verdict::Fail };
        Self::new(name, verdict, format!("{equal} of {total} equal"))
    }
}

/// What one folder was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Inputs, weights and every stage of one run of the model.
    Case,
    /// Results of the host pipeline.
    Host,
}

/// All rows of one folder.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// The folder as given.
    pub(crate) folder: PathBuf,
    /// What it was taken for; absent if that cannot be told.
    pub(crate) kind: Option<Kind>,
    /// Why it could not be judged to the end.
    pub(crate) error: Option<String>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// Wall time.
    pub(crate) seconds: f64,
}

impl Report {
    /// The report of `folder`; an outcome that is an error keeps no rows, so it cannot pass.
    pub(crate) fn new(
        folder: &Path,
        kind: Option<Kind>,
        outcome: anyhow::Result<Vec<Row>>,
        elapsed: Duration,
    ) -> Self {
        let (rows, error) = match outcome {
            Ok(rows) => (rows, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        Self { folder: folder.to_path_buf(), kind, error, rows, seconds: elapsed.as_secs_f64() }
    }

    /// Whether it was judged to the end, something passed, and nothing failed.
    pub(crate) fn passed(&self) -> bool {
        self.error.is_none() && self.count(Verdict::Pass) > 0 && self.count(Verdict::Fail) == 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// The table, with its head and its closing line.
    pub(crate) fn table(&self) -> String {
        let width = self.rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).max(5);
        let mut lines = vec![format!("{}", self.folder.display())];
        if !self.rows.is_empty() {
            lines.push(format!(
                "  {:<width$}  {:<6}  {:>13}  {:>9}  {:>9}",
                "stage", "result", "PCC", "max abs", "rel rms"
            ));
        }
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Pass => "pass",
                Verdict::Fail => "FAIL",
                Verdict::Info => "-",
            };
            let pcc = row.pcc.map_or(String::new(), |v| format!("{v:.11}"));
            let [max_abs, rel_rms] = [row.max_abs, row.rel_rms].map(|v| v.map_or(String::new(), scientific));
            let (name, detail) = (OneLine(&row.name).to_string(), OneLine(&row.detail));
            let line =
                format!("  {name:<width$}  {verdict:<6}  {pcc:>13}  {max_abs:>9}  {rel_rms:>9}  {detail}");
            lines.push(line.trim_end().to_string());
        }
        if let Some(error) = &self.error {
            lines.push(format!("  error: {}", OneLine(error)));
        }
        lines.push(format!(
            "  {}: {} passed, {} failed, {} shown only, {:.1} s",
            if self.passed() { "PASS" } else { "FAIL" },
            self.count(Verdict::Pass),
            self.count(Verdict::Fail) + usize::from(self.error.is_some()),
            self.count(Verdict::Info),
            self.seconds
        ));
        lines.join("\n")
    }
}

fn scientific(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.2e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn report(rows: Vec<Row>) -> Report {
        Report::new(Path::new("x"), Some(Kind::Case), Ok(rows), Duration::from_secs(1))
    }

    #[test]
    fn one_failing_row_fails_the_folder() {
        let pass = Row::equal("a", 3, 3);
        assert!(report(vec![pass.clone()]).passed());
        assert!(!report(vec![pass, Row::equal("b", 2, 3)]).passed());
    }

    #[test]
    fn a_folder_of_which_nothing_was_compared_fails() {
        assert!(!report(Vec::new()).passed());
        assert!(!report(vec![Row::info("a", "shown")]).passed());
        assert!(!report(vec![Row::equal("a", 0, 0)]).passed());
    }

    #[test]
    fn an_error_fails_and_is_shown() {
        let report = Report::new(Path::new("x"), None, Err(anyhow!("no such file")), Duration::ZERO);
        assert!(!report.passed());
        assert!(report.table().contains("error: no such file"), "{}", report.table());
    }
}
