//! The figures of the README: tables between two markers each, made from files of results that are committed beside it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::results::{Results, Row};
use crate::output;
use crate::workspace;

const BEGIN: &str = "<!-- bench: begin, written by `cargo xtask bench --readme";
/// Follows the file's name.
const HEAD_END: &str = "` -->";
const END: &str = "<!-- bench: end -->";

/// Puts the figures of `path` into every block of the README that names it.
///
/// # Errors
/// If the results lack a prediction, the README has no block of theirs, or it cannot be written.
pub(super) fn write(path: &Path) -> Result<()> {
    let readme = workspace::root().join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
    let named = fs::canonicalize(path).with_context(|| path.display().to_string())?;
    let root = fs::canonicalize(workspace::root())?;
    let shown = named.strip_prefix(root).unwrap_or(path).display().to_string();
    let figures = block(&Results::read(path)?, &shown)?;
    if !files(&text)?.contains(&shown.as_str()) {
        bail!("the README has no block of {shown}, wanted {BEGIN} {shown}{HEAD_END} and {END}");
    }
    output::write(&readme, replaced(&text, &shown, &figures)?.as_bytes())
}

/// A part of the README.
enum Part<'a> {
    Text(&'a str),
    /// Markers, and what is between them.
    Block {
        file: &'a str,
        whole: &'a str,
    },
}

/// `text` from its begin to its end.
fn parts(text: &str) -> Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at);
        let line = block.lines().next().unwrap_or_default();
        let file = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(HEAD_END));
        let file = file.with_context(|| format!("{line:?} names no file, wanted {BEGIN} FILE{HEAD_END}"))?;
        let end = block.find(END).with_context(|| format!("the block of {file} has no {END}"))?;
        let (whole, after) = block.split_at(end + END.len());
        parts.extend([Part::Text(before), Part::Block { file: file.trim(), whole }]);
        rest = after;
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// The files that blocks of `text` name.
fn files(text: &str) -> Result<Vec<&str>> {
    let file = |part| match part {
        Part::Text(_) => None,
        Part::Block { file, .. } => Some(file),
    };
    Ok(parts(text)?.into_iter().filter_map(file).collect())
}

/// `text` with `figures` in place of every block of `name`, markers included.
fn replaced(text: &str, name: &str, figures: &str) -> Result<String> {
    let part = |part| match part {
        Part::Block { file, .. } if file == name => figures,
        Part::Text(text) | Part::Block { whole: text, .. } => text,
    };
    Ok(parts(text)?.into_iter().map(part).collect())
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
    let peak = results.peak().map_or_else(|| "?".into(), |row| format!("{:.0} GF/s", row.median));
    let tokens = tokens.strip_prefix('s').unwrap_or(tokens);
    let views = views.strip_suffix("view").unwrap_or(views);
    let mut lines = vec![
        format!("{BEGIN} {file}{HEAD_END}"),
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
    // CPU time is shown where a share of the roofline is of it
    let busy = row.busy.filter(|_| row.work.is_some()).map(ms).unwrap_or_default();
    let share = row.roofline_share.map(|share| format!("{:.0} %", 100.0 * share)).unwrap_or_default();
    let cells = [name.to_string(), ms(row.median), p95, busy, share].map(cell);
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn the_readmes_figures_are_those_of_the_files_that_it_names() {
        let text = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let files = files(&text).unwrap();
        assert!(!files.is_empty());
        for file in files {
            let results = Results::read(&workspace::root().join(file)).unwrap();
            let new = replaced(&text, file, &block(&results, file).unwrap()).unwrap();
            assert!(new == text, "`cargo xtask bench --readme {file}` changes the README");
        }
    }

    /// A block of other figures.
    fn old(file: &str) -> String {
        format!("{BEGIN} {file}{HEAD_END}\nold figures of {file}\n{END}")
    }

    #[test]
    fn only_the_block_of_the_file_changes() {
        let text = format!("before\n{}\nbetween\n{}\nafter\n", old("a.json"), old("b.json"));
        assert_eq!(files(&text).unwrap(), ["a.json", "b.json"]);
        let figures = block(&results(), "b.json").unwrap();
        let new = replaced(&text, "b.json", &figures).unwrap();
        assert_eq!(new, format!("before\n{}\nbetween\n{figures}\nafter\n", old("a.json")));
        assert_eq!(replaced(&new, "b.json", &figures).unwrap(), new);
        let first = replaced(&text, "a.json", &figures).unwrap();
        assert!(first.ends_with(&format!("{END}\nbetween\n{}\nafter\n", old("b.json"))), "{first}");
    }

    #[test]
    fn the_figures_are_a_table_under_the_limits() {
        let figures = block(&results(), "b.json").unwrap();
        let row = "| **predict** | **31.0 ms** | **34.1 ms** | **27.9 ms** | **50 %** |";
        assert!(figures.contains(row) && figures.contains("469 GF/s, 63 GB/s"), "{figures}");
    }

    #[test]
    fn markers_that_do_not_close_are_errors() {
        assert!(files("no markers").unwrap().is_empty());
        assert!(files(&old("a.json").replace(END, "")).is_err());
        assert!(files(&old("a.json").replace(HEAD_END, "")).is_err());
    }
}
