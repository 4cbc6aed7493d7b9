//! Encoded bytes to a [`Frame`]: PNG, JPEG, WebP and BMP, told apart by content.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::{Frame, MAX_SIDE};
use crate::{Error, Result};

/// Most bytes that a decoder may allocate: an RGBA picture of [`MAX_SIDE`] squared.
const MAX_ALLOC: u64 = 4 * (MAX_SIDE as u64) * (MAX_SIDE as u64);

impl Frame {
    /// Decodes a picture.
    ///
    /// # Errors
    /// [`Error::Image`] if the bytes are not a whole PNG, JPEG, WebP or BMP, or a side is above [`MAX_SIDE`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let format = image::guess_format(bytes).map_err(|e| Error::Image(e.to_string()))?;
        let mut decoder = ImageReader::with_format(Cursor::new(bytes), format)
            .into_decoder()
            .map_err(|e| Error::Image(e.to_string()))?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_ALLOC);
        decoder.set_limits(limits).map_err(|e| Error::Image(e.to_string()))?;
        let picture = DynamicImage::from_decoder(decoder).map_err(|e| Error::Image(e.to_string()))?;
        let rgb = picture.into_rgb8();
        Self::new(rgb.width() as usize, rgb.height() as usize, rgb.into_raw())
    }
}
