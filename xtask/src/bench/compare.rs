//! Two runs side by side, and whether the second is slower than it may be.

use anyhow::{Result, bail};

use super::results::{Results, Row};
use super::server::REQUESTS;
use crate::say::say;

/// Results that both runs have, in the order of the second.
struct Pair<'a> {
    old: &'a Row,
    new: &'a Row,
    /// How many times worse the new one is: of CPU time per thread where both runs know it, since other work on the machine does
    /// not add to it; else of the median.
    ratio: f64,
    by: &'static str,
}

fn pairs<'a>(old: &'a Results, new: &'a Results) -> Vec<Pair<'a>> {
    let pair = |new: &'a Row| {
        let old = old.results.iter().find(|row| row.name == new.name && row.unit == new.unit)?;
        let (by, from, to) = match (old.busy, new.busy) {
            (Some(from), Some(to)) => ("busy", from, to),
            _ => ("median", old.median, new.median),
        };
        let (worse, better) = if new.more_is_better() { (from, to) } else { (to, from) };
        // Nothing is as good as nothing: of requests that failed, say.
        let ratio = if worse == 0.0 && better == 0.0 { 1.0 } else { worse / better };
        Some(Pair { old, new, ratio, by })
    };
    new.results.iter().filter_map(pair).collect()
}

/// Prints both runs and how many times worse the second is.
///
/// # Errors
/// If they have no result in common.
pub(super) fn print(old: &Results, new: &Results) -> Result<()> {
    let pairs = pairs(old, new);
    if pairs.is_empty() {
        bail!("the two runs have no result in common");
    }
    say!("a: {}", old.machine.line());
    say!("b: {}", new.machine.line());
    if !old.machine.is_like(&new.machine) {
        say!("a and b are of different machines, instruction sets or profiles");
    }
    say!("{:<52} {:>12} {:>12} {:>5} {:>9}  {}", "", "a, median", "b, median", "", "b worse", "judged by");
    for Pair { old, new, ratio, by } in &pairs {
        say!(
            "{:<52} {:>12.3} {:>12.3} {:>5} {ratio:>8.3}x  {by}",
            new.name,
            old.median,
            new.median,
            new.unit
        );
    }
    for (name, rows, others) in [("a", old, new), ("b", new, old)] {
        let alone = rows.results.iter().filter(|row| !others.results.iter().any(|o| o.name == row.name));
        let alone = alone.count();
        if alone > 0 {
            say!("{alone} results are in {name} alone");
        }
    }
    Ok(())
}

/// Fails if a result of `new` is more than `ratio` times worse than the baseline's. Limits of the machine are not results of ours, and
/// how many requests the queue's bound refuses is no time.
///
/// # Errors
/// If one is, nothing can be compared, or the runs are of different machines, where a comparison says nothing of the code.
pub(super) fn check(baseline: &Results, new: &Results, ratio: f64) -> Result<()> {
    if !(ratio.is_finite() && ratio >= 1.0) {
        bail!("ratio {ratio}, wanted 1 or more");
    }
    if !baseline.machine.is_like(&new.machine) {
        bail!("the baseline is of {}, this run of {}", baseline.machine.line(), new.machine.line());
    }
    let is_judged = |row: &Row| !row.name.starts_with("limit/") && row.unit != REQUESTS;
    let judged: Vec<Pair<'_>> = pairs(baseline, new).into_iter().filter(|pair| is_judged(pair.new)).collect();
    if judged.is_empty() {
        bail!("this run and the baseline have no result in common");
    }
    let worse: Vec<&Pair<'_>> =
        judged.iter().filter(|pair| pair.ratio.is_nan() || pair.ratio > ratio).collect();
    for Pair { new, ratio, by, .. } in &worse {
        say!("regression: {} is {ratio:.3} times worse by {by}", new.name);
    }
    if let Some(worst) = worse.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
        bail!(
            "{} of {} results are more than {ratio} times worse than the baseline, {} the most ({:.3})",
            worse.len(),
            judged.len(),
            worst.new.name,
            worst.ratio
        );
    }
    say!("{} results are within {ratio} times the baseline", judged.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    fn scaled(prefix: &str, by: f64) -> Results {
        let mut results = results();
        for row in results.results.iter_mut().filter(|row| row.name.starts_with(prefix)) {
            row.median *= by;
            row.busy = row.busy.map(|busy| busy * by);
        }
        results
    }

    #[test]
    fn a_regression_beyond_the_ratio_fails_and_is_named() {
        check(&results(), &results(), 1.0).unwrap();
        check(&results(), &scaled("predict/", 1.1), 1.15).unwrap();
        let error = check(&results(), &scaled("predict/", 1.2), 1.15).unwrap_err().to_string();
        assert!(error.contains("1 of 5 results") && error.contains("predict/mixed_dit/mini"), "{error}");
        check(&results(), &scaled("stage/", 0.5), 1.15).unwrap();
    }

    #[test]
    fn a_faster_machine_is_no_regression_and_another_machine_no_baseline() {
        check(&results(), &scaled("limit/", 3.0), 1.15).unwrap();
        check(&results(), &scaled("limit/", 0.1), 1.15).unwrap();
        let mut other = results();
        other.machine = other.machine.with_threads(64);
        assert!(check(&results(), &other, 1.15).unwrap_err().to_string().contains("the baseline is of"));
    }

    #[test]
    fn more_memory_counts_and_nothing_in_common_is_an_error() {
        assert!(check(&results(), &scaled("memory/", 1.3), 1.15).is_err());
        let mut empty = results();
        empty.results.clear();
        assert!(check(&results(), &empty, 1.15).is_err());
        assert!(print(&results(), &empty).is_err());
        assert!(check(&results(), &results(), f64::NAN).is_err());
    }

    #[test]
    fn nothing_is_no_worse_than_nothing_and_something_is() {
        let swapped = |mb: f64| {
            let mut results = results();
            results.results.push(Row::new("memory/swapped".into(), "MB", [mb; 4], 1));
            results
        };
        check(&swapped(0.0), &swapped(0.0), 1.15).unwrap();
        assert!(check(&swapped(0.0), &swapped(1.0), 1.15).is_err());
    }

    #[test]
    fn busy_wall_clocks_are_not_held_against_the_code() {
        let mut new = results();
        for row in &mut new.results {
            if row.busy.is_some() {
                row.median *= 3.0;
            }
        }
        check(&results(), &new, 1.15).unwrap();
    }
}
