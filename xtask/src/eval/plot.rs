//! An episode as a picture like those of NVIDIA's `plot_trajectory`: per joint the recorded state, the recorded and the predicted
//! action, and dots where the policy was asked.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use plotters::prelude::*;

use super::open_loop::{Joint, Trajectory};
use crate::picture::{self, Area, COLORS, FAINT, INK, OVERSAMPLING, decimals, font, scaled, value_range};

/// Size of one joint's panel, in pixels.
const PANEL: (u32, u32) = (460, 230);
/// Height of the line that names the colours.
const LEGEND: u32 = 30;
/// Panels side by side.
const COLUMNS: usize = 3;
/// Episodes of more joints are not drawn: the picture would be larger than viewers take.
const MAX_JOINTS: usize = 192;

const RECORDED: RGBColor = COLORS[0];
const PREDICTED: RGBColor = COLORS[1];
const STATE: RGBColor = COLORS[9];
const ASKED: RGBColor = RGBColor(200, 0, 40);

/// Draws `trajectory` as a PNG at `path`.
///
/// # Errors
/// If there is no joint or too many, or the file cannot be written.
pub(super) fn write(trajectory: &Trajectory, fps: f64, path: &Path) -> Result<()> {
    let joints = &trajectory.joints;
    if joints.is_empty() || joints.len() > MAX_JOINTS {
        bail!("{} joints, a picture has room for 1 to {MAX_JOINTS}", joints.len());
    }
    let columns = joints.len().min(COLUMNS);
    let rows = joints.len().div_ceil(columns);
    let size = (PANEL.0 * columns as u32, LEGEND + PANEL.1 * rows as u32);
    let Trajectory { episode, instruction, mse, .. } = trajectory;
    let title = match columns {
        COLUMNS => format!("episode {episode}, MSE {mse:.5}: {instruction}"),
        _ => format!("episode {episode}, MSE {mse:.5}"),
    };
    picture::write(path, &title, size, |area| {
        let (head, body) = area.split_vertically(LEGEND * OVERSAMPLING);
        legend(&head).map_err(|e| anyhow!("plot: {e}"))?;
        for (panel, joint) in body.split_evenly((rows, columns)).iter().zip(joints) {
            draw(panel, joint, &trajectory.inference_at, fps)
                .map_err(|e| anyhow!("plot of {}: {e}", joint.name))?;
        }
        Ok(())
    })
}

fn legend(area: &Area<'_>) -> Result<()> {
    let mut x = 24;
    for (name, color) in [("recorded", RECORDED), ("predicted", PREDICTED), ("state", STATE)] {
        let line = [(scaled(x), scaled(13)), (scaled(x + 26), scaled(13))];
        area.draw(&PathElement::new(line, color.stroke_width(3 * OVERSAMPLING)))?;
        area.draw(&Text::new(name, (scaled(x + 32), scaled(5)), font(14)))?;
        x += 120;
    }
    area.draw(&Circle::new((scaled(x + 10), scaled(13)), scaled(4), ASKED.filled()))?;
    area.draw(&Text::new("policy asked", (scaled(x + 22), scaled(5)), font(14)))?;
    Ok(())
}

fn draw(area: &Area<'_>, joint: &Joint, inference_at: &[usize], fps: f64) -> Result<()> {
    let series = [Some(&joint.recorded), Some(&joint.predicted), joint.state.as_ref()];
    let all: Vec<f32> = series.iter().flatten().flat_map(|values| values.iter().map(|&v| v as f32)).collect();
    let (low, high) = value_range(&all);
    let seconds = |step: usize| step as f64 / fps;
    let end = seconds(joint.recorded.len().saturating_sub(1).max(1));
    let mut chart = ChartBuilder::on(area)
        .margin(scaled(8))
        .margin_right(scaled(16))
        .caption(format!("{}   MSE {:.5}", joint.name, joint.mse), font(15))
        .x_label_area_size(scaled(24))
        .y_label_area_size(scaled(52))
        .build_cartesian_2d(0f64..end, low..high)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(OVERSAMPLING))
        .axis_style(INK.mix(0.5).stroke_width(OVERSAMPLING))
        .label_style(font(12))
        .x_labels(6)
        .y_labels(5)
        .x_label_formatter(&|x| format!("{x:.1} s"))
        .y_label_formatter(&|y| decimals(*y, high - low))
        .draw()?;
    let points = |values: &[f64]| -> Vec<(f64, f32)> {
        values.iter().enumerate().map(|(step, &v)| (seconds(step), v as f32)).collect()
    };
    for (values, color) in [
        (joint.state.as_ref(), STATE),
        (Some(&joint.predicted), PREDICTED),
        (Some(&joint.recorded), RECORDED),
    ] {
        let Some(values) = values else { continue };
        chart.draw_series(LineSeries::new(points(values), color.stroke_width(2 * OVERSAMPLING)))?;
    }
    let recorded = points(&joint.recorded);
    let asked = inference_at.iter().filter_map(|&step| recorded.get(step));
    chart.draw_series(asked.map(|&point| Circle::new(point, scaled(4), ASKED.filled())))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory(joints: usize) -> Trajectory {
        let wave = |shift: f64| (0..40).map(|step| (f64::from(step) * 0.2 + shift).sin()).collect();
        let joint = |number: usize| Joint {
            name: format!("arm[{number}]"),
            mse: 0.5,
            state: Some(wave(1.0)),
            recorded: wave(0.0),
            predicted: wave(0.5),
        };
        Trajectory {
            episode: 3,
            instruction: "wave".into(),
            steps: 40,
            inference_at: vec![0, 16, 32],
            mse: 0.5,
            out_of_range: 0,
            predict_ms: 1.0,
            joints: (0..joints).map(joint).collect(),
        }
    }

    #[test]
    fn every_joint_has_a_panel_with_all_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("episode.png");
        write(&trajectory(4), 20.0, &path).unwrap();
        let picture = image::open(&path).unwrap().to_rgb8();
        assert_eq!(picture.width(), 3 * PANEL.0);
        for color in [RECORDED, PREDICTED, STATE, ASKED] {
            let wanted = image::Rgb([color.0, color.1, color.2]);
            assert!(picture.pixels().filter(|p| **p == wanted).count() > 60, "{color:?}");
        }
    }

    #[test]
    fn no_joint_and_too_many_are_refused() {
        let path = Path::new("/nonexistent/episode.png");
        for count in [0, MAX_JOINTS + 1] {
            assert!(write(&trajectory(count), 20.0, path).unwrap_err().to_string().contains("joints"));
        }
    }
}
