//! Pictures of figures: a canvas that is written as PNG, colours, and text without system fonts.

use std::io::Cursor;
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::output;

/// Roboto, Apache-2.0 (`xtask/assets/fonts/LICENSE-Roboto`).
const FONT: &[u8] = include_bytes!("../assets/fonts/Roboto-Regular.ttf");

/// The picture is drawn this many times larger and scaled down: plotters smooths steep lines badly.
pub(crate) const OVERSAMPLING: u32 = 2;
/// Share of the value range that is left free above and below lines.
const MARGIN: f32 = 0.08;
/// Height of the head line, in pixels.
const HEAD: u32 = 48;

/// Line colours, told apart by people with any colour vision as far as ten colours can be
/// (Okabe and Ito's eight, less black and yellow, then Tol's muted ones).
pub(crate) const COLORS: [RGBColor; 10] = [
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
pub(crate) const INK: RGBColor = RGBColor(40, 44, 52);
pub(crate) const FAINT: RGBColor = RGBColor(225, 228, 232);

/// Part of a picture.
pub(crate) type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// Draws a picture of `width` x `height` pixels below a head line with `title`, and writes it as PNG to `path`.
///
/// # Errors
/// What `draw` reports, or that the file cannot be written.
pub(crate) fn write(
    path: &Path,
    title: &str,
    (width, height): (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<()> {
    use_own_font()?;
    let height = height + HEAD;
    let (large_width, large_height) = (width * OVERSAMPLING, height * OVERSAMPLING);
    let mut pixels = vec![255; large_width as usize * large_height as usize * 3];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (large_width, large_height)).into_drawing_area();
        let (head, body) = root.split_vertically(HEAD * OVERSAMPLING);
        head.draw(&Text::new(title, (scaled(24), scaled(16)), font(22))).map_err(|e| anyhow!("plot: {e}"))?;
        draw(&body)?;
        root.present().map_err(|e| anyhow!("plot: {e}"))?;
    }
    let large = image::RgbImage::from_raw(large_width, large_height, pixels)
        .context("the plot's buffer has another size")?;
    let mut png = Cursor::new(Vec::new());
    image::imageops::resize(&large, width, height, image::imageops::FilterType::Triangle)
        .write_to(&mut png, image::ImageFormat::Png)
        .context("plot")?;
    output::write(path, png.get_ref())
}

/// Creates the folder that `path` is to be in.
///
/// # Errors
/// If it cannot be.
pub(crate) fn create_folder_of(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) => std::fs::create_dir_all(folder).with_context(|| folder.display().to_string()),
        None => Ok(()),
    }
}

/// `pixels` of the finished picture, in pixels of the drawing.
pub(crate) fn scaled(pixels: i32) -> i32 {
    pixels * OVERSAMPLING as i32
}

/// The bundled font, `size` pixels high in the finished picture.
pub(crate) fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", scaled(size)).into_font().color(&INK)
}

/// The values' range with room around it; a constant gets a range of its own.
pub(crate) fn value_range(values: &[f32]) -> (f32, f32) {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let span = high - low;
    let room =
        if span > f32::EPSILON * high.abs().max(1.0) { span * MARGIN } else { high.abs().max(1.0) * 0.1 };
    (low - room, high + room)
}

/// `value` with as many decimals as a range of `span` needs.
pub(crate) fn decimals(value: f32, span: f32) -> String {
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
