//! The plots of the report: bars of times, the distribution of a latency, the roofline.

use super::super::results::{Results, Row};
use super::svg::{Anchor, LogAxis, Svg, step};
use crate::quantile::quantile;

const WIDTH: f64 = 960.0;
/// Room on the left for names.
const NAMES: f64 = 190.0;
/// Height of a bar with its gap.
const BAR: f64 = 30.0;
/// Room below for an axis and its name.
const AXIS: f64 = 46.0;

/// Bars of the median, each with a mark at the least time that the machine's limits allow.
pub(super) fn bars(rows: &[(String, &Row)], label: &str) -> String {
    const FIGURES: f64 = 190.0;
    let most = rows.iter().map(|(_, row)| row.median).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let height = BAR * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, height + AXIS);
    let x = |ms: f64| NAMES + (WIDTH - NAMES - FIGURES) * ms / most;
    let step = step(most);
    for tick in (0..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= most) {
        svg.line("grid", [x(tick), 0.0], [x(tick), height]);
        svg.text("tick", [x(tick), height + 18.0], Anchor::Middle, &short(tick));
    }
    let mark = marks(rows);
    svg.text("tick", [NAMES, height + 38.0], Anchor::Start, &format!("ms on the wall, median{mark}"));
    for (place, (name, row)) in rows.iter().enumerate() {
        let top = BAR * place as f64 + 4.0;
        svg.text("name", [NAMES - 10.0, top + 15.0], Anchor::End, name);
        svg.rect("bar", [NAMES, top, x(row.median) - NAMES, BAR - 8.0]);
        if let Some(work) = row.work {
            svg.line("floor", [x(work.floor_ms), top - 2.0], [x(work.floor_ms), top + BAR - 6.0]);
        }
        let share = row
            .roofline_share
            .map_or_else(String::new, |share| format!("  {:.0} % of roofline", 100.0 * share));
        let figure = format!("{} ms{share}", short(row.median));
        svg.text("figure", [x(row.median) + 8.0, top + 15.0], Anchor::Start, &figure);
    }
    svg.finish(label)
}

/// What marks and shares say, if there are any.
fn marks(rows: &[(String, &Row)]) -> String {
    let judged = || rows.iter().filter(|(_, row)| row.work.is_some());
    let by_cpu = judged().filter(|(_, row)| row.busy.is_some()).count();
    let basis = match (judged().count(), by_cpu) {
        (0, _) => return String::new(),
        (_, 0) => "of wall time",
        (all, some) if all == some => "of CPU time",
        _ => "of CPU time, of wall time where that is not known",
    };
    format!("; mark: what the machine's limits allow; share: {basis}")
}

/// How many runs took how long, with lines at the quantiles. Nothing of fewer than ten runs.
pub(super) fn distribution(row: &Row) -> Option<String> {
    const HEIGHT: f64 = 220.0;
    const TOP: f64 = 34.0;
    const LEFT: f64 = 46.0;
    let samples = &row.samples;
    let (low, high) = (*samples.first()?, *samples.last()?);
    if samples.len() < 10 || high.is_nan() || high <= low {
        return None;
    }
    let bins = (samples.len() as f64).sqrt().ceil().clamp(8.0, 40.0) as usize;
    let mut counts = vec![0usize; bins];
    for sample in samples {
        let place = ((sample - low) / (high - low) * bins as f64) as usize;
        if let Some(count) = counts.get_mut(place.min(bins - 1)) {
            *count += 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(1) as f64;
    let x = |ms: f64| LEFT + (WIDTH - LEFT - 40.0) * (ms - low) / (high - low);
    let y = |count: f64| TOP + (HEIGHT - TOP) * (1.0 - count / most);
    let mut svg = Svg::new(WIDTH, HEIGHT + AXIS);
    let across = step(most).max(1.0);
    for tick in (0..).map(|n| f64::from(n) * across).take_while(|tick| *tick <= most) {
        svg.line("grid", [LEFT, y(tick)], [WIDTH - 40.0, y(tick)]);
        svg.text("tick", [LEFT - 8.0, y(tick) + 4.0], Anchor::End, &short(tick));
    }
    let bin = (high - low) / bins as f64;
    for (place, count) in counts.iter().enumerate() {
        let from = low + bin * place as f64;
        let top = y(*count as f64);
        svg.rect("bar", [x(from) + 1.0, top, x(from + bin) - x(from) - 2.0, HEIGHT - top]);
    }
    let along = step(high - low);
    let first = (low / along).ceil() as i64;
    for tick in (first..).map(|n| n as f64 * along).take_while(|tick| *tick <= high) {
        svg.text("tick", [x(tick), HEIGHT + 18.0], Anchor::Middle, &short(tick));
    }
    svg.text(
        "tick",
        [LEFT, HEIGHT + 38.0],
        Anchor::Start,
        &format!("ms on the wall; {} runs", samples.len()),
    );
    // The lines are named on two levels, so that near ones stay readable.
    for (place, (name, share)) in [("median", 0.5), ("p95", 0.95), ("p99", 0.99)].into_iter().enumerate() {
        let at = quantile(samples, share);
        let level = if place % 2 == 0 { 11.0 } else { 26.0 };
        svg.line("mark", [x(at), level + 4.0], [x(at), HEIGHT]);
        let anchor = if x(at) > WIDTH - 140.0 { Anchor::End } else { Anchor::Start };
        let shift = if x(at) > WIDTH - 140.0 { -4.0 } else { 4.0 };
        svg.text("figure", [x(at) + shift, level], anchor, &format!("{name} {}", short(at)));
    }
    Some(svg.finish(&format!("distribution of {}", row.name)))
}

/// Arithmetic reached over arithmetic per byte, under the machine's two limits.
pub(super) fn roofline(results: &Results) -> Option<String> {
    const HEIGHT: f64 = 400.0;
    const LEFT: f64 = 64.0;
    let peak = results.peak()?.median;
    let memory = results.limit("limit/read/")?.median;
    let points: Vec<(&Row, f64, f64)> = results
        .results
        .iter()
        // the prediction again, several times
        .filter(|row| !row.name.starts_with("scale/"))
        .filter_map(|row| {
            let (work, busy) = (row.work?, row.busy.unwrap_or(row.median));
            let known = work.flops > 0.0 && work.bytes > 0.0 && busy > 0.0;
            known.then(|| (row, work.flops / work.bytes, work.flops / busy / 1e6))
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let ridge = peak / memory;
    let ends = |values: Vec<f64>, with: f64| {
        let (low, high) = values.iter().fold((with, with), |(low, high), v| (v.min(low), v.max(high)));
        (10f64.powf((low / 1.5).log10().floor()), 10f64.powf((high * 1.5).log10().ceil()))
    };
    let (low, high) = ends(points.iter().map(|p| p.1).collect(), ridge);
    let along = LogAxis { low, high, from: LEFT, to: WIDTH - 20.0 };
    let (low, high) = ends(points.iter().map(|p| p.2).collect(), peak);
    let up = LogAxis { low, high, from: HEIGHT, to: 10.0 };
    let mut svg = Svg::new(WIDTH, HEIGHT + AXIS);
    for tick in along.decades() {
        svg.line("grid", [along.at(tick), 10.0], [along.at(tick), HEIGHT]);
        svg.text("tick", [along.at(tick), HEIGHT + 18.0], Anchor::Middle, &short(tick));
    }
    for tick in up.decades() {
        svg.line("grid", [LEFT, up.at(tick)], [WIDTH - 20.0, up.at(tick)]);
        svg.text("tick", [LEFT - 8.0, up.at(tick) + 4.0], Anchor::End, &short(tick));
    }
    svg.text(
        "tick",
        [LEFT, HEIGHT + 38.0],
        Anchor::Start,
        "operations per byte (across); GF/s of CPU time, on the wall where that is not known (up)",
    );
    // The memory's line from the left or lower edge, whichever it meets first, to the ridge.
    let begin = along.low.max(up.low / memory);
    let roof = [[begin, memory * begin], [ridge, peak], [along.high, peak]];
    svg.path("roof", &roof.map(|[x, y]| [along.at(x), up.at(y)]));
    let limit = format!("{peak:.0} GF/s");
    svg.text("figure", [along.at(along.high) - 6.0, up.at(peak) - 8.0], Anchor::End, &limit);
    let middle = (begin * ridge).sqrt();
    let limit = format!("{memory:.0} GB/s");
    svg.text("figure", [along.at(middle) - 10.0, up.at(memory * middle) - 8.0], Anchor::End, &limit);
    let mut names: Vec<[f64; 2]> = Vec::new();
    let dots: Vec<[f64; 2]> = points
        .iter()
        .filter(|(row, ..)| !row.name.starts_with("op/"))
        .map(|(_, x, y)| [along.at(*x), up.at(*y)])
        .collect();
    for (row, intensity, reached) in points {
        let (class, radius) = match row.name.split('/').next() {
            Some("op") => ("op", 4.5),
            _ => ("stage", 7.0),
        };
        let at = [along.at(intensity), up.at(reached)];
        svg.dot(class, at, radius, &format!("{}: {reached:.1} GF/s", row.name));
        if class == "stage" {
            let name =
                row.name.split('/').nth(usize::from(row.name.starts_with("stage/"))).unwrap_or_default();
            let mut place = [at[0] + 11.0, at[1] + 4.0];
            // A name moves down until no dot of a stage and none of the names before is in its way.
            let is_on = |dot: &[f64; 2], place: &[f64; 2]| {
                (-4.0..62.0).contains(&(dot[0] - place[0])) && (dot[1] - place[1] + 4.0).abs() < 13.0
            };
            let is_near = |other: &[f64; 2], place: &[f64; 2]| {
                (other[0] - place[0]).abs() < 70.0 && (other[1] - place[1]).abs() < 14.0
            };
            while names.iter().any(|other| is_near(other, &place))
                || dots.iter().any(|dot| is_on(dot, &place))
            {
                place[1] += 3.0;
            }
            names.push(place);
            if place[1] > at[1] + 4.0 {
                svg.line("leader", at, [place[0] - 3.0, place[1] - 4.0]);
            }
            svg.text("figure", place, Anchor::Start, name);
        }
    }
    Some(svg.finish("roofline"))
}

/// A figure with three places.
pub(super) fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    match text.split_once('.') {
        Some((whole, places)) if places.chars().all(|c| c == '0') => whole.to_string(),
        Some(_) => text.trim_end_matches('0').to_string(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::{results, row};
    use super::*;

    #[test]
    fn every_row_has_its_bar_and_its_mark() {
        let (vision, denoise) = (row("stage/vision", 10.0), row("stage/denoise", 20.0));
        let svg = bars(&[("vision".into(), &vision), ("denoise".into(), &denoise)], "stages");
        assert_eq!((svg.matches("class=\"bar\"").count(), svg.matches("class=\"floor\"").count()), (2, 2));
        assert!(svg.contains("20 ms  50 % of roofline"), "{svg}");
    }

    #[test]
    fn the_caption_names_the_time_that_shares_are_of() {
        let (mut vision, mut denoise) = (row("stage/vision", 10.0), row("stage/denoise", 20.0));
        let caption = |a: &Row, b: &Row| marks(&[("vision".into(), a), ("denoise".into(), b)]);
        assert!(caption(&vision, &denoise).ends_with("share: of CPU time"));
        vision.busy = None;
        assert!(caption(&vision, &denoise).ends_with("of CPU time, of wall time where that is not known"));
        denoise.busy = None;
        assert!(caption(&vision, &denoise).ends_with("share: of wall time"));
        (vision.work, denoise.work) = (None, None);
        assert_eq!(caption(&vision, &denoise), "");
    }

    #[test]
    fn every_run_is_in_one_bin_and_few_runs_are_not_drawn() {
        let svg = distribution(&row("predict/x", 30.0)).unwrap();
        assert!(svg.contains("20 runs") && svg.contains("median "), "{svg}");
        let mut few = row("predict/x", 30.0);
        few.samples.truncate(9);
        assert!(distribution(&few).is_none());
        few.samples = vec![1.0; 50];
        assert!(distribution(&few).is_none());
    }

    #[test]
    fn what_has_no_work_or_no_limits_has_no_roofline() {
        let svg = roofline(&results()).unwrap();
        assert_eq!((svg.matches("class=\"op\"").count(), svg.matches("class=\"stage\"").count()), (1, 3));
        assert!(svg.contains("469 GF/s") && svg.contains("63 GB/s"), "{svg}");
        let mut bare = results();
        bare.results.retain(|row| !row.name.starts_with("limit/"));
        assert!(roofline(&bare).is_none());
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.0123, 3.5, 20.0, 469.4, 0.0].map(short), ["0.012", "3.5", "20", "469", "0"]);
    }
}
