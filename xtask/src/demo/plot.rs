//! A picture of an action chunk: one panel per joint group, one line per joint, drawn without system fonts.

use std::io::Cursor;
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, anyhow, bail};
use gr00t_host::ActionChunk;
use gr00t_host::action::ActionGroup;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::output;

/// Roboto, Apache-2.0 (`xtask/assets/fonts/LICENSE-Roboto`).
const FONT: &[u8] = include_bytes!("../../assets/fonts/Roboto-Regular.ttf");

/// Size of one panel and of the head line, in pixels.
const PANEL: (u32, u32) = (640, 380);
const HEAD: u32 = 48;
/// The picture is drawn this many times larger and scaled down: plotters smooths steep lines badly.
const OVERSAMPLING: u32 = 2;
/// Panels side by side.
const COLUMNS: usize = 2;
/// Share of the value range that is left free above and below the lines.
const MARGIN: f32 = 0.08;
/// Share of the time axis that is left free on the right for the legend.
const LEGEND_ROOM: f32 = 0.12;

/// Line colours, told apart by people with any colour vision as far as ten colours can be
/// (Okabe and Ito's eight, less black and yellow, then Tol's muted ones).
const COLORS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(51, 34, 136),
    RGBColor(136, 34, 85),
    RGBColor(153, 153, 51),
    RGBColor(102, 102, 102),
];
const INK: RGBColor = RGBColor(40, 44, 52);
const FAINT: RGBColor = RGBColor(225, 228, 232);

/// Draws `chunk` under `title` as a PNG at `path`.
///
/// # Errors
/// If there is nothing to draw, a value is not finite, or the file cannot be written.
pub(crate) fn write(chunk: &ActionChunk, title: &str, path: &Path) -> Result<()> {
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
    use_own_font()?;
    let columns = groups.len().min(COLUMNS);
    let rows = groups.len().div_ceil(columns);
    let size = (PANEL.0 * columns as u32, HEAD + PANEL.1 * rows as u32);
    let (width, height) = (size.0 * OVERSAMPLING, size.1 * OVERSAMPLING);
    let mut pixels = vec![255; width as usize * height as usize * 3];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        let (head, body) = root.split_vertically(HEAD * OVERSAMPLING);
        head.draw(&Text::new(title, (scaled(24), scaled(16)), font(22))).map_err(|e| anyhow!("plot: {e}"))?;
        for (panel, group) in body.split_evenly((rows, columns)).iter().zip(groups) {
            draw_group(panel, group, chunk.horizon).map_err(|e| anyhow!("plot of {}: {e}", group.key))?;
        }
        root.present().map_err(|e| anyhow!("plot: {e}"))?;
    }
    let large =
        image::RgbImage::from_raw(width, height, pixels).context("the plot's buffer has another size")?;
    let mut png = Cursor::new(Vec::new());
    image::imageops::resize(&large, size.0, size.1, image::imageops::FilterType::Triangle)
        .write_to(&mut png, image::ImageFormat::Png)
        .context("plot")?;
    output::write(path, png.get_ref())
}

/// `pixels` of the finished picture, in pixels of the drawing.
fn scaled(pixels: i32) -> i32 {
    pixels * OVERSAMPLING as i32
}

/// The bundled font, `size` pixels high in the finished picture.
fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", scaled(size)).into_font().color(&INK)
}

fn draw_group<B: DrawingBackend>(
    panel: &DrawingArea<B, plotters::coord::Shift>,
    group: &ActionGroup,
    horizon: usize,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let (low, high) = value_range(&group.values);
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
        let points = group.values.iter().skip(joint).step_by(group.dim).enumerate();
        let points: Vec<(f32, f32)> = points.map(|(step, value)| (step as f32, *value)).collect();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2 * OVERSAMPLING)))?
            .label(format!("{joint}"))
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + scaled(16), y)], color.stroke_width(3 * OVERSAMPLING))
            });
        chart.draw_series(points.iter().map(|point| Circle::new(*point, scaled(3), color.filled())))?;
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

/// The values' range with room around it; a constant gets a range of its own.
fn value_range(values: &[f32]) -> (f32, f32) {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let span = high - low;
    let room =
        if span > f32::EPSILON * high.abs().max(1.0) { span * MARGIN } else { high.abs().max(1.0) * 0.1 };
    (low - room, high + room)
}

/// `value` with as many decimals as a range of `span` needs.
fn decimals(value: f32, span: f32) -> String {
    let digits = (1.0 - span.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}

/// Registers the bundled font once; plotters keeps it for the life of the process.
fn use_own_font() -> Result<()> {
    static REGISTERED: Once = Once::new();
    let mut outcome = Ok(());
    REGISTERED.call_once(|| {
        outcome = register_font("sans-serif", FontStyle::Normal, FONT)
            .map_err(|_| anyhow!("the bundled font cannot be read"));
    });
    outcome
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

    #[test]
    fn the_picture_has_a_panel_per_group_and_every_line_colour() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plot.png");
        write(&chunk(|t, j| (t as f32 * 0.3 + j as f32).sin()), "a chunk", &path).unwrap();
        let picture = image::open(&path).unwrap().to_rgb8();
        assert_eq!(picture.dimensions(), (2 * PANEL.0, HEAD + 2 * PANEL.1));
        for color in &COLORS[..7] {
            let wanted = image::Rgb([color.0, color.1, color.2]);
            assert!(picture.pixels().filter(|p| **p == wanted).count() > 100, "{color:?}");
        }
    }

    #[test]
    fn a_constant_chunk_is_drawn() {
        let dir = tempfile::tempdir().unwrap();
        write(&chunk(|_, _| 0.0), "constant", &dir.path().join("plot.png")).unwrap();
    }

    #[test]
    fn a_chunk_with_nan_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plot.png");
        let error = write(&chunk(|t, _| if t == 3 { f32::NAN } else { 0.0 }), "x", &path).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
        assert!(!path.exists());
    }
}
