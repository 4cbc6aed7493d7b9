//! The figures as a picture: error along the model, error per joint group, bytes and time per policy.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use plotters::prelude::*;

use super::figures::{PolicyFigures, Report, StageFigures};
use crate::picture::{self, Area, COLORS, FAINT, INK, OVERSAMPLING, font, scaled};

const WIDTH: u32 = 1280;
const STAGES_HEIGHT: u32 = 430;
const LOWER_HEIGHT: u32 = 400;
/// What a logarithmic axis shows of a difference that is 0.
const LEAST: f64 = 1e-9;

/// Draws `report` under `title` as a PNG at `path`.
///
/// # Errors
/// If nothing was measured, or the file cannot be written.
pub(super) fn write(report: &Report, title: &str, path: &Path) -> Result<()> {
    if report.policies.iter().all(|policy| policy.stages.is_empty()) {
        bail!("no policy was measured, so there is nothing to draw");
    }
    picture::write(path, title, (WIDTH, STAGES_HEIGHT + LOWER_HEIGHT), |area| {
        let (upper, lower) = area.split_vertically(STAGES_HEIGHT * OVERSAMPLING);
        let (left, right) = lower.split_horizontally(WIDTH * OVERSAMPLING / 2);
        let policies = &report.policies;
        stages(&upper, policies).map_err(|e| anyhow!("plot of the stages: {e}"))?;
        groups(&left, policies).map_err(|e| anyhow!("plot of the joints: {e}"))?;
        costs(&right, policies).map_err(|e| anyhow!("plot of the costs: {e}"))
    })
}

/// A part of the model as the stage names begin.
fn part(stage: &str) -> &str {
    stage.split('.').next().unwrap_or(stage)
}

/// What is drawn of a policy: all but the time embeddings, which are computed in fp32 and would be needles in the picture.
fn drawn(policy: &PolicyFigures) -> Vec<&StageFigures> {
    let is_time = |name: &str| name.rsplit('.').next() == Some("temb");
    policy.stages.iter().filter(|stage| !is_time(&stage.name)).collect()
}

fn stages(area: &Area<'_>, policies: &[PolicyFigures]) -> Result<()> {
    let Some(first) = policies.first().map(drawn) else { return Ok(()) };
    let all = policies.iter().flat_map(drawn).map(|stage| stage.rel_rms.max(LEAST));
    let (low, high) = decades(all);
    let mut chart = ChartBuilder::on(area)
        .margin(scaled(14))
        .margin_right(scaled(24))
        .caption(
            "relative rms of every stage, worst of all observations (dots: what leaves a part of the model)",
            font(17),
        )
        .x_label_area_size(scaled(34))
        .y_label_area_size(scaled(64))
        .build_cartesian_2d(-1f64..first.len() as f64, (low..high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(OVERSAMPLING))
        .axis_style(INK.mix(0.5).stroke_width(OVERSAMPLING))
        .label_style(font(14))
        .disable_x_mesh()
        .x_label_formatter(&|_| String::new())
        .y_label_formatter(&|y| format!("{y:.0e}"))
        .draw()?;
    let mut known = "";
    for (index, stage) in first.iter().enumerate() {
        if part(&stage.name) == known {
            continue;
        }
        known = part(&stage.name);
        let x = index as f64 - 0.5;
        let line = [(x, low), (x, high)];
        chart.draw_series([PathElement::new(line, INK.mix(0.35).stroke_width(OVERSAMPLING))])?;
        // Parts of one stage, at the ends of the run, have no room for a name.
        let length = first.iter().filter(|s| part(&s.name) == known).count();
        if length > 1 {
            let at = (x, high);
            let label = EmptyElement::at(at) + Text::new(known.to_string(), (scaled(5), scaled(4)), font(13));
            chart.draw_series([label])?;
        }
    }
    for (policy, color) in policies.iter().zip(COLORS) {
        let points: Vec<(f64, f64)> =
            drawn(policy).iter().enumerate().map(|(i, s)| (i as f64, s.rel_rms.max(LEAST))).collect();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2 * OVERSAMPLING)))?
            .label(policy.policy)
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + scaled(16), y)], color.stroke_width(3 * OVERSAMPLING))
            });
        let gated = drawn(policy).into_iter().zip(points).filter(|(stage, _)| stage.gated);
        chart.draw_series(gated.map(|(_, point)| Circle::new(point, scaled(4), color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .legend_area_size(scaled(20))
        .margin(scaled(6))
        .label_font(font(14))
        .draw()?;
    Ok(())
}

/// The powers of ten around the values.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, 0.0), |(low, high), v| (v.min(low), v.max(high)));
    if !low.is_finite() || high <= 0.0 {
        return (LEAST, 1.0);
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    (10f64.powf(low), 10f64.powf(high.max(low + 1.0)))
}

fn groups(area: &Area<'_>, policies: &[PolicyFigures]) -> Result<()> {
    let Some(first) = policies.first() else { return Ok(()) };
    let keys: Vec<String> = first.groups.iter().map(|g| g.key.clone()).collect();
    let (low, high) = decades(
        policies.iter().flat_map(|p| &p.groups).flat_map(|g| [g.max_abs, g.rms]).filter(|v| *v > 0.0),
    );
    let mut chart = ChartBuilder::on(area)
        .margin(scaled(14))
        .caption("actions in physical units: largest difference (bar), rms (line)", font(17))
        .x_label_area_size(scaled(30))
        .y_label_area_size(scaled(64))
        .build_cartesian_2d(0f64..keys.len().max(1) as f64, (low..high).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(OVERSAMPLING))
        .axis_style(INK.mix(0.5).stroke_width(OVERSAMPLING))
        .label_style(font(14))
        .x_label_formatter(&|_| String::new())
        .y_label_formatter(&|y| format!("{y:.0e}"))
        .draw()?;
    let bar = 0.8 / policies.len().max(1) as f64;
    for (place, (policy, color)) in policies.iter().zip(COLORS).enumerate() {
        for (index, group) in policy.groups.iter().enumerate() {
            let x = index as f64 + 0.1 + bar * place as f64;
            let (left, right) = (x + 0.04 * bar, x + 0.96 * bar);
            let top = group.max_abs.max(low);
            chart.draw_series([Rectangle::new([(left, low), (right, top)], color.mix(0.75).filled())])?;
            let rms = group.rms.max(low);
            chart.draw_series([PathElement::new(
                [(left, rms), (right, rms)],
                INK.stroke_width(2 * OVERSAMPLING),
            )])?;
        }
    }
    for (index, key) in keys.into_iter().enumerate() {
        let name = Text::new(key, (scaled(0), scaled(8)), font(13));
        chart.draw_series([EmptyElement::at((index as f64 + 0.1, low)) + name])?;
    }
    Ok(())
}

/// Bars of bytes per part, and the time beside each.
fn costs(area: &Area<'_>, policies: &[PolicyFigures]) -> Result<()> {
    const MB: f64 = 1e6;
    let most = policies.iter().map(|p| p.bytes() as f64 / MB).fold(0.0, f64::max).max(1e-6);
    let rows = policies.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(scaled(14))
        .caption("MB of weights on the device; median time of a prediction (noise: no difference)", font(17))
        .x_label_area_size(scaled(30))
        .y_label_area_size(scaled(84))
        .build_cartesian_2d(0f64..most * 1.22, rows..0f64)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(OVERSAMPLING))
        .axis_style(INK.mix(0.5).stroke_width(OVERSAMPLING))
        .label_style(font(14))
        .y_label_formatter(&|_| String::new())
        .x_labels(7)
        .draw()?;
    for (row, (policy, color)) in policies.iter().zip(COLORS).enumerate() {
        let (top, bottom) = (row as f64 + 0.2, row as f64 + 0.72);
        let mut from = 0.0;
        for (index, part) in policy.parts.iter().enumerate() {
            let to = from + part.bytes as f64 / MB;
            let shade = color.mix(0.85 - 0.17 * index as f64);
            chart.draw_series([Rectangle::new([(from, top), (to, bottom)], shade.filled())])?;
            if to - from > 0.12 * most {
                let name = Text::new(part.part, (scaled(4), scaled(4)), font(13));
                chart.draw_series([EmptyElement::at((from, top)) + name])?;
            }
            from = to;
        }
        let noise = policies
            .first()
            .is_some_and(|first| super::show::time_change(policy, first) == super::show::NOISE);
        let ms = policy.median_ms().map_or_else(String::new, |ms| {
            if noise { format!("{ms:.0} ms, noise") } else { format!("{ms:.1} ms") }
        });
        let total = Text::new(format!("{from:.1} MB"), (scaled(6), scaled(2)), font(14));
        chart.draw_series([EmptyElement::at((from, top)) + total])?;
        let time = Text::new(ms, (scaled(6), scaled(20)), font(14));
        chart.draw_series([EmptyElement::at((from, top)) + time])?;
        let name = Text::new(policy.policy, (-scaled(80), scaled(12)), font(14));
        chart.draw_series([EmptyElement::at((0.0, top)) + name])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_ends_at_powers_of_ten() {
        let (low, high) = decades([3e-3, 0.2].into_iter());
        assert!((low - 1e-3).abs() < 1e-12 && (high - 1.0).abs() < 1e-12, "{low} {high}");
        assert_eq!(decades([].into_iter()), (LEAST, 1.0));
        let (low, high) = decades([1e-3].into_iter());
        assert!(high > low);
    }
}
