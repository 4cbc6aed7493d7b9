//! A decoded camera frame.

/// RGB, 8 bits per channel, rows from the top, `[height, width, 3]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Frame {
    /// A frame from its pixels.
    ///
    /// # Errors
    /// [`crate::Error::Image`] if a side is 0 or `rgb` is not `height * width * 3` bytes.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> crate::Result<Self> {
        let wanted = width.checked_mul(height).and_then(|n| n.checked_mul(3));
        if width == 0 || height == 0 || wanted != Some(rgb.len()) {
            return Err(crate::Error::Image(format!(
                "frame of {width}x{height} RGB has {} bytes, wanted {}",
                rgb.len(),
                wanted.map_or_else(|| "fewer pixels".into(), |n| n.to_string()),
            )));
        }
        Ok(Self { width, height, rgb })
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// `[height, width, 3]`, row-major.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({}x{})", self.width, self.height)
    }
}
