//! The report as one HTML file: figures, plots as inline SVG, all results as a table. It loads nothing.

mod plots;
mod svg;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::plots::short;
use self::svg::escaped;
use super::results::{Results, Row};
use crate::output;

const STYLE: &str = include_str!("style.css");
/// Ops that are drawn, those that take longest.
const MOST_OPS: usize = 20;

/// Writes `index.html` to `folder`, which is created, and gives its path.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(results: &Results, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join("index.html");
    output::write(&path, page(results).as_bytes())?;
    Ok(path)
}

fn page(results: &Results) -> String {
    let mut body = String::new();
    for predict in results.of("predict/") {
        let case = predict.name.strip_prefix("predict/").unwrap_or_default();
        section(&mut body, &format!("One prediction: {case}"), &tiles(results, predict));
        let stages: Vec<(String, &Row)> =
            results.of("stage/").filter(|row| row.name.ends_with(case)).map(|row| (part(row), row)).collect();
        if !stages.is_empty() {
            section(&mut body, "Stages", &plots::bars(&stages, "time of each stage"));
        }
        if let Some(plot) = plots::distribution(predict) {
            section(&mut body, "Latency of single predictions", &plot);
        }
    }
    if let Some(plot) = plots::roofline(results) {
        let keys = "<p class=\"keys\"><span class=\"key stage\"></span>stages and whole predictions <span class=\"key op\"></span>kernels</p>";
        section(&mut body, "Roofline", &format!("{plot}{keys}"));
    }
    let mut ops: Vec<(String, &Row)> = results.of("op/").map(|row| (part(row), row)).collect();
    ops.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    ops.truncate(MOST_OPS);
    if !ops.is_empty() {
        section(&mut body, "Kernels", &plots::bars(&ops, "time of each kernel"));
    }
    let served: Vec<(String, &Row)> = results
        .of("server/wall/")
        .map(|row| {
            let clients = row.name.rsplit('/').next().unwrap_or_default();
            let clients = clients.split(' ').next().unwrap_or_default();
            let like = |what: &str| {
                let name = row.name.replace("/wall/", what);
                results.results.iter().find(|row| row.name == name).map(|row| row.median)
            };
            let rate = like("/throughput/").map(|rate| format!(": {} /s", short(rate)));
            let refused = like("/overloaded/").filter(|count| *count > 0.0);
            let refused = refused.map(|count| format!(", {count} refused"));
            (format!("{clients}{}{}", rate.unwrap_or_default(), refused.unwrap_or_default()), row)
        })
        .collect();
    if !served.is_empty() {
        section(
            &mut body,
            "Server under load: a request over HTTP, by clients at once",
            &plots::bars(&served, "requests"),
        );
    }
    let scaled: Vec<(String, &Row)> = results.of("scale/").map(|row| (scale(row), row)).collect();
    if !scaled.is_empty() {
        section(&mut body, "Views and threads", &plots::bars(&scaled, "time of a prediction"));
    }
    section(&mut body, "All results", &table(results));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>gr00t-tt bench</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>gr00t-tt bench</h1>\n<p class=\"machine\">{}</p>\n{body}</body>\n</html>\n",
        escaped(&results.machine.line())
    )
}

fn section(body: &mut String, title: &str, content: &str) {
    // writing to a string does not fail
    let _ = write!(body, "<section>\n<h2>{}</h2>\n{content}</section>\n", escaped(title));
}

/// What is short for a row among its like: of `op/linear/dit.out/…` `dit.out`, of `op/sdpa/llm/…` `llm attention`.
fn part(row: &Row) -> String {
    let parts: Vec<&str> = row.name.split('/').collect();
    match parts.as_slice() {
        ["op", "sdpa", name, ..] => format!("{name} attention"),
        ["op", "linear", name, ..] | [_, name, ..] => (*name).to_string(),
        _ => row.name.clone(),
    }
}

/// Of `scale/mixed_dit/mini/2view/…` `2view`.
fn scale(row: &Row) -> String {
    row.name.split('/').nth(3).unwrap_or_default().to_string()
}

/// The figures that a reader looks for first.
fn tiles(results: &Results, predict: &Row) -> String {
    let mut tiles = vec![
        ("median".to_string(), format!("{} ms", short(predict.median))),
        ("p99".to_string(), format!("{} ms", short(predict.p99))),
    ];
    if let Some(busy) = predict.busy {
        tiles.push(("CPU time per thread".into(), format!("{} ms", short(busy))));
    }
    if let Some(share) = predict.roofline_share {
        tiles.push(("of the roofline".into(), format!("{:.0} %", 100.0 * share)));
    }
    for (prefix, name) in [("host/encode/", "observation to inputs"), ("load/cold/", "load and first action")]
    {
        tiles.extend(
            results.of(prefix).next().map(|row| (name.to_string(), format!("{} ms", short(row.median)))),
        );
    }
    tiles.extend(
        results
            .of("memory/resident/")
            .next()
            .map(|row| ("resident".to_string(), format!("{} MB", short(row.median)))),
    );
    let tiles: Vec<String> = tiles
        .iter()
        .map(|(name, value)| format!("<div><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(name)))
        .collect();
    format!("<div class=\"tiles\">\n{}</div>\n", tiles.concat())
}

fn table(results: &Results) -> String {
    let mut rows = String::new();
    for row in &results.results {
        let percent = row.roofline_share.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share));
        let busy = row.busy.map_or_else(String::new, short);
        let cells = [row.median, row.p95, row.p99, row.max].map(short).join("</td><td>");
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{cells}</td><td>{}</td><td>{busy}</td><td>{percent}</td><td>{}</td></tr>",
            escaped(&row.name),
            row.n,
            escaped(&row.unit)
        );
    }
    format!(
        "<table>\n<tr><th>name</th><th>median</th><th>p95</th><th>p99</th><th>max</th><th>n</th>\
         <th>CPU per thread</th><th>roofline</th><th>unit</th></tr>\n{rows}</table>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, row};
    use super::*;

    #[test]
    fn the_page_has_every_section_and_loads_nothing() {
        let page = page(&results());
        for wanted in [
            "One prediction: mixed_dit/mini",
            "Stages",
            "Latency of single",
            "Roofline",
            "Kernels",
            "All results",
        ] {
            assert!(page.contains(wanted), "no {wanted:?}");
        }
        assert!(page.contains("a CPU, 2 CPUs; avx512"));
        for loaded in ["http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(loaded), "{loaded}");
        }
    }

    #[test]
    fn views_and_threads_are_bars_of_their_own() {
        let mut results = results();
        results.results.push(row("scale/mixed_dit/mini/2view/s553", 40.0));
        let page = page(&results);
        assert!(page.contains("Views and threads") && page.contains(">2view</text>"), "{page}");
    }

    #[test]
    fn the_server_has_bars_that_say_how_many_were_refused() {
        let mut results = results();
        for (name, figure) in [("wall", 40.0), ("throughput", 33.0), ("overloaded", 83.0)] {
            results.results.push(row(&format!("server/{name}/bf16/mini/64 clients"), figure));
        }
        let page = page(&results);
        assert!(page.contains(">64: 33 /s, 83 refused</text>"), "{page}");
    }

    #[test]
    fn results_without_a_prediction_are_still_a_table() {
        let mut few = results();
        few.results.truncate(1);
        let page = page(&few);
        assert!(page.contains("limit/vdpbf16ps") && !page.contains("<svg"), "{page}");
    }
}
