//! NVIDIA's eval-mode image chain (`VideoToTensor`, `VideoCrop`, `VideoResize`, `VideoToNumpy` and the Eagle
//! processor's normalisation), bit-exact.

use super::Frame;
use super::resize::Resize;
use crate::{Error, Result};

/// Share of each side that the centre crop keeps (`VideoCrop(scale=0.95)`).
pub const CROP_SCALE: f64 = 0.95;
/// Longest side that the chain accepts, in pixels.
pub const MAX_SIDE: usize = 8192;

const CHANNELS: usize = 3;
/// Mean and standard deviation of the Eagle processor (0.5), in units of a `u8` value.
const MEAN_AND_STD: f32 = 127.5;

/// A rectangle of a frame, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropBox {
    /// First row.
    pub top: usize,
    /// First column.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// Centre crop, antialiased resize to a square, truncation to `u8`, normalisation.
#[derive(Debug, Clone)]
pub struct EvalTransform {
    image_size: usize,
}

impl EvalTransform {
    /// A chain that ends in `image_size` x `image_size` pixels (the vision tower's; 224 in N1.5).
    pub fn new(image_size: usize) -> Self {
        Self { image_size }
    }

    /// Rows and columns of the result.
    pub fn image_size(&self) -> usize {
        self.image_size
    }

    /// What the centre crop keeps of a frame of `width` x `height`; sizes are truncated, the corner is rounded
    /// half to even.
    pub fn crop_box(&self, width: usize, height: usize) -> CropBox {
        let (top, height) = centre(height);
        let (left, width) = centre(width);
        CropBox { top, left, height, width }
    }

    /// The cropped and resized frame before truncation: `[image_size, image_size, 3]`, values in [0, 1].
    ///
    /// # Errors
    /// [`Error::Image`] if a side of the frame is below 2 or above [`MAX_SIDE`], or `image_size` is 0 or above it.
    pub fn resized_f32(&self, frame: &Frame) -> Result<Vec<f32>> {
        let (resize, crop) = self.plan(frame)?;
        let mut resized = Vec::with_capacity(self.image_size * self.image_size * CHANNELS);
        resize.run(frame, crop, |row| resized.extend_from_slice(row));
        Ok(resized)
    }

    /// The cropped and resized frame as NVIDIA's model sees it: `[image_size, image_size, 3]`.
    ///
    /// # Errors
    /// As [`Self::resized_f32`].
    pub fn resized_u8(&self, frame: &Frame) -> Result<Vec<u8>> {
        let (resize, crop) = self.plan(frame)?;
        let mut resized = Vec::with_capacity(self.image_size * self.image_size * CHANNELS);
        // Truncated, not rounded: NVIDIA casts.
        resize.run(frame, crop, |row| resized.extend(row.iter().map(|value| (value * 255.0) as u8)));
        Ok(resized)
    }

    /// Writes the vision tower's input, `[3, image_size, image_size]` in [-1, 1], to `out`.
    ///
    /// # Errors
    /// As [`Self::resized_f32`], and if `out` has another length.
    pub fn pixel_values(&self, frame: &Frame, out: &mut [f32]) -> Result<()> {
        let resized = self.resized_u8(frame)?;
        normalize(&resized, out)
    }

    /// Checks the sizes and prepares the resize.
    fn plan(&self, frame: &Frame) -> Result<(Resize, CropBox)> {
        let size = self.image_size;
        let (width, height) = (frame.width(), frame.height());
        if width.max(height) > MAX_SIDE || size > MAX_SIDE {
            return Err(Error::Image(format!(
                "cannot resize {width}x{height} to {size}x{size}: sides above {MAX_SIDE}"
            )));
        }
        let crop = self.crop_box(width, height);
        if crop.width == 0 || crop.height == 0 || size == 0 {
            return Err(Error::Image(format!(
                "cannot resize {width}x{height} to {size}x{size}: nothing is left after the {CROP_SCALE} centre crop"
            )));
        }
        Ok((Resize::new((crop.width, crop.height), (size, size)), crop))
    }
}

/// Writes `[H, W, 3]` bytes as `[3, H, W]` floats, `(value - 127.5) / 127.5`.
///
/// # Errors
/// [`Error::Image`] if the lengths differ.
pub fn normalize(rgb: &[u8], out: &mut [f32]) -> Result<()> {
    let plane = rgb.len() / CHANNELS;
    if rgb.len() != out.len() || plane * CHANNELS != rgb.len() || plane == 0 {
        return Err(Error::Image(format!("{} bytes of RGB into {} pixel values", rgb.len(), out.len())));
    }
    for (channel, plane) in out.chunks_exact_mut(plane).enumerate() {
        for (value, pixel) in plane.iter_mut().zip(rgb.chunks_exact(CHANNELS)) {
            *value = (f32::from(pixel[channel]) - MEAN_AND_STD) / MEAN_AND_STD;
        }
    }
    Ok(())
}

/// First index and length of the centre crop of one side.
fn centre(side: usize) -> (usize, usize) {
    let kept = (side as f64 * CROP_SCALE) as usize;
    let first = ((side - kept) as f64 / 2.0).round_ties_even() as usize;
    (first, kept)
}
