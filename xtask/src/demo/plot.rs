//! A picture of an action chunk: one panel per joint group, one line per joint, drawn without system fonts.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use gr00t_host::ActionChunk;
use gr00t_host::action::ActionGroup;
use plotters::prelude::*;

use crate::picture::{self, COLORS, FAINT, INK, OVERSAMPLING, decimals, font, scaled, value_range};

/// Size of one panel, in pixels.
const PANEL: (u32, u32) = (640, 380);
/// Panels side by side.
const COLUMNS: usize = 2;
/// Share of the time axis that is left free on the right for the legend.
const LEGEND_ROOM: f32 = 0.12;

/// Draws `chunk` under `title` as a PNG at `path`, dashed over it what is `expected` of its groups.
///
/// # Errors
/// If there is nothing to draw, a value is not finite, or the file cannot be written.
pub(crate) fn write(chunk: &ActionChunk, expected: &ActionChunk, title: &str, path: &Path) -> Result<()> {
    let groups = &chunk.groups;
    if groups.is_empty() || chunk.horizon == 0 {
        bail!("an empty action chunk cannot be drawn");
    }
    if groups.iter().any(|g| g.dim == 0 || g.values.len() != g.dim * chunk.horizon) {
        bail!("an action group is not horizon x dim values");
    }
    if groups.iter().flat_map(|g| &g.values).any(|v| !v.is_finite()) {
        bail!("the action chunk holds a value that is not finite");
    }
    let columns = groups.len().min(COLUMNS);
    let rows = groups.len().div_ceil(columns);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    picture::write(path, title, size, |body| {
        for (panel, group) in body.split_evenly((rows, columns)).iter().zip(groups) {
            draw_group(panel, group, expected.group(&group.key), chunk.horizon)
                .map_err(|e| anyhow!("plot of {}: {e}", group.key))?;
        }
        Ok(())
    })
}

fn draw_group<B: DrawingBackend>(
    panel: &DrawingArea<B, plotters::coord::Shift>,
    group: &ActionGroup,
    expected: Option<&ActionGroup>,
    horizon: usize,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let expected = expected.filter(|expected| expected.dim == group.dim);
    let (low, high) = match expected {
        Some(expected) => value_range(&[group.values.as_slice(), expected.values.as_slice()].concat()),
        None => value_range(&group.values),
    };
    let last = (horizon - 1).max(1) as f32;
    let mut chart = ChartBuilder::on(panel)
        .margin(scaled(14))
        .margin_right(scaled(20))
        .caption(&group.key, font(19))
        .x_label_area_size(scaled(38))
        .y_label_area_size(scaled(56))
        .build_cartesian_2d(0.0..last * (1.0 + LEGEND_ROOM), low..high)?;
    let label = font(14);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(OVERSAMPLING))
        .axis_style(INK.mix(0.5).stroke_width(OVERSAMPLING))
        .label_style(label.clone())
        .x_labels(horizon.min(9))
        .y_labels(7)
        .x_label_formatter(&|x| if *x > last { String::new() } else { format!("{x:.0}") })
        .y_label_formatter(&|y| decimals(*y, high - low))
        .x_desc("time step")
        .draw()?;
    for joint in 0..group.dim {
        let color = COLORS[joint % COLORS.len()];
        let points = course(group, joint);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2 * OVERSAMPLING)))?
            .label(format!("{joint}"))
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + scaled(16), y)], color.stroke_width(3 * OVERSAMPLING))
            });
        chart.draw_series(points.iter().map(|point| Circle::new(*point, scaled(3), color.filled())))?;
        if let Some(expected) = expected {
            let points = course(expected, joint).into_iter();
            chart.draw_series(DashedLineSeries::new(
                points,
                scaled(4),
                scaled(5),
                INK.stroke_width(OVERSAMPLING),
            ))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .legend_area_size(scaled(20))
        .margin(scaled(6))
        .label_font(label)
        .draw()
}

/// One joint's value at each step.
fn course(group: &ActionGroup, joint: usize) -> Vec<(f32, f32)> {
    let values = group.values.iter().skip(joint).step_by(group.dim).enumerate();
    values.map(|(step, value)| (step as f32, *value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(value: impl Fn(usize, usize) -> f32) -> ActionChunk {
        let group = |key: &str, dim: usize| ActionGroup {
            key: key.into(),
            dim,
            values: (0..16 * dim).map(|i| value(i / dim, i % dim)).collect(),
        };
        ActionChunk {
            horizon: 16,
            out_of_range: 0,
            groups: vec![
                group("left_arm", 7),
                group("right_arm", 7),
                group("left_hand", 6),
                group("gripper", 1),
            ],
        }
    }

    /// Expects nothing.
    fn nothing() -> ActionChunk {
        ActionChunk { horizon: 16, out_of_range: 0, groups: Vec::new() }
    }

    #[test]
    fn the_picture_has_a_panel_per_group_and_every_line_colour() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plot.png");
        write(&chunk(|t, j| (t as f32 * 0.3 + j as f32).sin()), &nothing(), "a chunk", &path).unwrap();
        let picture = image::open(&path).unwrap().to_rgb8();
        assert_eq!(picture.dimensions(), (2 * PANEL.0, 48 + 2 * PANEL.1));
        for color in &COLORS[..7] {
            let wanted = image::Rgb([color.0, color.1, color.2]);
            assert!(picture.pixels().filter(|p| **p == wanted).count() > 100, "{color:?}");
        }
    }

    #[test]
    fn the_expected_chunk_is_drawn_over_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plot.png");
        let ink = |expected: &ActionChunk| {
            write(&chunk(|_, j| j as f32), expected, "two chunks", &path).unwrap();
            let picture = image::open(&path).unwrap().to_rgb8();
            // A line one pixel wide is mixed with what is beside it, and lines of series have a strong colour.
            let dark_grey = |p: &image::Rgb<u8>| {
                let (low, high) = (p.0.into_iter().min(), p.0.into_iter().max());
                high < Some(170) && low.zip(high).is_some_and(|(low, high)| high - low < 24)
            };
            picture.pixels().filter(|p| dark_grey(p)).count()
        };
        let alone = ink(&nothing());
        assert!(ink(&chunk(|_, j| j as f32 + 0.5)) > alone + 1000);
    }

    #[test]
    fn a_constant_chunk_is_drawn() {
        let dir = tempfile::tempdir().unwrap();
        write(&chunk(|_, _| 0.0), &nothing(), "constant", &dir.path().join("plot.png")).unwrap();
    }

    #[test]
    fn a_chunk_with_nan_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plot.png");
        let broken = chunk(|t, _| if t == 3 { f32::NAN } else { 0.0 });
        let error = write(&broken, &nothing(), "x", &path).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
        assert!(!path.exists());
    }
}
