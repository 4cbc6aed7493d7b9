//! Encoded bytes to a [`Frame`]: PNG, JPEG, WebP and BMP, told apart by content.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, GenericImageView, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::{Frame, MAX_SIDE, jpeg};
use crate::{Error, Result};

/// Most bytes of pixels that a picture may decode to: RGBA of [`MAX_SIDE`] squared.
pub(super) const MAX_PIXEL_BYTES: u64 = 4 * (MAX_SIDE as u64) * (MAX_SIDE as u64);
/// Bytes of an unknown file that its error message shows.
const SHOWN_BYTES: usize = 4;

impl Frame {
    /// Decodes a picture as RGB of 8 bits per channel.
    ///
    /// Grey becomes three equal channels and palettes become their colours. Alpha is dropped without blending,
    /// as PIL's `convert("RGB")` does. Of 16 bits the high byte is kept. An EXIF orientation is applied, so that
    /// the frame is upright as image viewers and `OpenCV` show it; PIL does so only on request
    /// (`ImageOps.exif_transpose`). Of an animation the first picture is taken, colour profiles are ignored.
    ///
    /// # Errors
    /// [`Error::Image`] if the bytes are not a whole PNG, JPEG, WebP or BMP, if a side is above [`MAX_SIDE`]
    /// (found before any pixel is allocated), or if the colours are not grey or RGB (CMYK).
    ///
    /// ```
    /// use gr00t_host::image::Frame;
    /// let error = Frame::decode(b"GIF89a").unwrap_err();
    /// assert_eq!(error.to_string(), "image: not a PNG, JPEG, WebP or BMP: starts with 47 49 46 38");
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (mut picture, orientation) = match image::guess_format(bytes) {
            Ok(ImageFormat::Jpeg) => jpeg::decode(bytes)?,
            Ok(format @ (ImageFormat::Png | ImageFormat::WebP | ImageFormat::Bmp)) => read(bytes, format)?,
            _ => return Err(unknown(bytes)),
        };
        picture.apply_orientation(orientation);
        let (width, height) = picture.dimensions();
        Self::new(width as usize, height as usize, into_rgb(picture)?)
    }
}

/// Decodes with the `image` crate.
fn read(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, Orientation)> {
    let name = format.extensions_str().first().copied().unwrap_or("picture");
    let broken = |e: &image::ImageError| Error::Image(format!("broken {name}: {}", one_line(&e.to_string())));
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_PIXEL_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|e| broken(&e))?;
    let (width, height) = decoder.dimensions();
    check_size(name, width, height, decoder.total_bytes())?;
    let orientation = decoder.orientation().map_err(|e| broken(&e))?;
    let picture = DynamicImage::from_decoder(decoder).map_err(|e| broken(&e))?;
    Ok((picture, orientation))
}

/// Refuses a picture whose header announces more pixels than the caps allow.
pub(super) fn check_size(name: &str, width: u32, height: u32, pixel_bytes: u64) -> Result<()> {
    if width.max(height) as usize > MAX_SIDE {
        return Err(Error::Image(format!("{name} of {width}x{height} has a side above {MAX_SIDE}")));
    }
    if pixel_bytes > MAX_PIXEL_BYTES {
        return Err(Error::Image(format!(
            "{name} of {width}x{height} decodes to {pixel_bytes} bytes, at most {MAX_PIXEL_BYTES} are allowed"
        )));
    }
    Ok(())
}

/// A decoder's message on one line.
pub(super) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unknown(bytes: &[u8]) -> Error {
    if bytes.is_empty() {
        return Error::Image("0 bytes".to_owned());
    }
    let head: Vec<String> = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Error::Image(format!("not a PNG, JPEG, WebP or BMP: starts with {}", head.join(" ")))
}

fn into_rgb(picture: DynamicImage) -> Result<Vec<u8>> {
    let high = |value: &u16| (value >> 8) as u8;
    Ok(match picture {
        DynamicImage::ImageRgb8(rgb) => rgb.into_raw(),
        DynamicImage::ImageRgba8(rgba) => rgba.pixels().flat_map(|p| [p[0], p[1], p[2]]).collect(),
        DynamicImage::ImageLuma8(grey) => grey.pixels().flat_map(|p| [p[0]; 3]).collect(),
        DynamicImage::ImageLumaA8(grey) => grey.pixels().flat_map(|p| [p[0]; 3]).collect(),
        DynamicImage::ImageRgb16(rgb) => rgb.iter().map(high).collect(),
        DynamicImage::ImageRgba16(rgba) => {
            rgba.pixels().flat_map(|p| [high(&p[0]), high(&p[1]), high(&p[2])]).collect()
        }
        DynamicImage::ImageLuma16(grey) => grey.pixels().flat_map(|p| [high(&p[0]); 3]).collect(),
        DynamicImage::ImageLumaA16(grey) => grey.pixels().flat_map(|p| [high(&p[0]); 3]).collect(),
        other => {
            return Err(Error::Image(format!(
                "pixels of {:?}, wanted 8 or 16 bits per channel",
                other.color()
            )));
        }
    })
}
