//! The figures of the README: a table between two markers, made from a file of results that is committed beside it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::results::{Results, Row};
use crate::output;
use crate::workspace;

const BEGIN: &str = "<!-- bench: begin, written by `cargo xtask bench --readme";
const END: &str = "<!-- bench: end -->";

/// Puts the figures of `path` into the README.
///
/// # Errors
/// If the results lack a prediction, the README its markers, or it cannot be written.
pub(super) fn write(path: &Path) -> Result<()> {
    let readme = workspace::root().join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
    let named = fs::canonicalize(path).with_context(|| path.display().to_string())?;
    let root = fs::canonicalize(workspace::root())?;
    let shown = named.strip_prefix(root).unwrap_or(path).display().to_string();
    let figures = block(&Results::read(path)?, &shown)?;
    output::write(&readme, replaced(&text, &figures)?.as_bytes())
}

/// `text` with `figures` in place of what is between the markers, markers included.
fn replaced(text: &str, figures: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("the README has no {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the README has no {END}"))?;
    Ok(format!("{before}{figures}{after}"))
}

/// Markers and table.
fn block(results: &Results, file: &str) -> Result<String> {
    let predict = results.of("predict/").next().context("the results hold no prediction")?;
    let case = predict.name.strip_prefix("predict/").unwrap_or_default();
    let mut parts = case.split('/');
    let mut part = || parts.next().unwrap_or("?");
    let (policy, config, views, tokens) = (part(), part(), part(), part());
    let limit = |prefix: &str| {
        results.limit(prefix).map_or_else(|| "?".into(), |row| format!("{:.0} {}", row.median, row.unit))
    };
    let peak = results.of("limit/").filter(|row| row.unit == "GF/s").last();
    let peak = peak.map_or_else(|| "?".into(), |row| format!("{:.0} GF/s", row.median));
    let tokens = tokens.strip_prefix('s').unwrap_or(tokens);
    let views = views.strip_suffix("view").unwrap_or(views);
    let mut lines = vec![
        format!("{BEGIN} {file}` -->"),
        format!(
            "`{config}` sizes, `{policy}`, {views} view{}, S = {tokens}, {} predictions. {}. Limits measured in the same run: {peak}, {}.",
            if views == "1" { "" } else { "s" },
            predict.n,
            results.machine.line(),
            limit("limit/read/")
        ),
        String::new(),
        "| | wall, median | p95 | CPU time per thread | share of the roofline |".into(),
        "|---|---|---|---|---|".into(),
    ];
    for row in results.of("stage/").filter(|row| row.name.ends_with(case)) {
        let stage = row.name.split('/').nth(1).unwrap_or_default();
        lines.push(line(stage, row, ""));
    }
    lines.push(line("predict", predict, "**"));
    for (prefix, name) in [
        ("host/encode/", "observation to model inputs"),
        ("host/decode/", "model output to actions"),
        ("load/cold/", "load and first action"),
        ("load/packed_cache/", "the same from the packed cache"),
    ] {
        lines.extend(results.of(prefix).next().map(|row| line(name, row, "")));
    }
    for row in results.of("memory/resident/").take(1) {
        let size = if row.median < 1e3 {
            format!("{:.0} MB", row.median)
        } else {
            format!("{:.1} GB", row.median / 1e3)
        };
        lines.push(format!("| resident memory | {size} |  |  |  |"));
    }
    lines.push(END.into());
    Ok(lines.join("\n"))
}

fn line(name: &str, row: &Row, strong: &str) -> String {
    let ms = |value: f64| match value {
        value if value < 10.0 => format!("{value:.2} ms"),
        value if value < 100.0 => format!("{value:.1} ms"),
        value => format!("{value:.0} ms"),
    };
    let cell = |text: String| if text.is_empty() { text } else { format!("{strong}{text}{strong}") };
    let p95 = if row.n > 1 { ms(row.p95) } else { String::new() };
    let busy = row.busy.filter(|busy| *busy > 0.0 && row.work.is_some()).map(ms).unwrap_or_default();
    let share = row.roofline_share.map(|share| format!("{:.0} %", 100.0 * share)).unwrap_or_default();
    let cells = [name.to_string(), ms(row.median), p95, busy, share].map(cell);
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn the_readmes_figures_are_those_of_the_file_that_it_names() {
        let text = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let (_, rest) = text.split_once(BEGIN).unwrap();
        let (file, _) = rest.trim_start().split_once('`').unwrap();
        let results = Results::read(&workspace::root().join(file)).unwrap();
        assert_eq!(replaced(&text, &block(&results, file).unwrap()).unwrap(), text);
    }

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("before\n{BEGIN} old.json` -->\nold\n{END}\nafter\n");
        let figures = block(&results(), "new.json").unwrap();
        let new = replaced(&text, &figures).unwrap();
        assert!(new.starts_with("before\n") && new.ends_with("\nafter\n") && !new.contains("old"), "{new}");
        assert!(
            new.contains("| **predict** | **31.0 ms** | **34.1 ms** | **27.9 ms** | **50 %** |"),
            "{new}"
        );
        assert!(new.contains("469 GF/s, 63 GB/s"), "{new}");
        assert_eq!(replaced(&new, &figures).unwrap(), new);
        assert!(replaced("no markers", &figures).is_err());
    }
}
