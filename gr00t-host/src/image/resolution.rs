//! What happens to a frame whose size is not the one that the embodiment's metadata names.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::resize::Resize;
use super::{CropBox, Frame, MAX_SIDE};
use crate::{Error, Result};

const CHANNELS: usize = 3;

/// How a frame of another size than the metadata's is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResolutionPolicy {
    /// It is an error, as in NVIDIA's code.
    Strict,
    /// It goes through the eval chain at its own size; its aspect ratio is not kept.
    Resize,
    /// It is first resized to fit the metadata's size, keeping its aspect ratio, and centred on black. The
    /// datasets that N1.5 was trained on were made this way.
    Letterbox,
}

impl FromStr for ResolutionPolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "strict" => Ok(Self::Strict),
            "resize" => Ok(Self::Resize),
            "letterbox" => Ok(Self::Letterbox),
            _ => Err(Error::Image(format!(
                "resolution policy {name:?} is unknown, wanted strict, resize or letterbox"
            ))),
        }
    }
}

impl fmt::Display for ResolutionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Resize => "resize",
            Self::Letterbox => "letterbox",
        })
    }
}

/// Applies `policy` to a frame of a camera whose metadata says `resolution`, (width, height). A frame that has
/// that size, or whose metadata says none, is returned as it is.
///
/// # Errors
/// [`Error::Image`] that names both sizes if they differ under [`ResolutionPolicy::Strict`], or if either has a
/// side above [`MAX_SIDE`] or the wanted one a side of 0 under [`ResolutionPolicy::Letterbox`].
pub fn fit(
    frame: &Frame,
    resolution: Option<(usize, usize)>,
    policy: ResolutionPolicy,
) -> Result<Cow<'_, Frame>> {
    let got = (frame.width(), frame.height());
    let Some(wanted) = resolution.filter(|wanted| *wanted != got) else {
        return Ok(Cow::Borrowed(frame));
    };
    match policy {
        ResolutionPolicy::Strict => Err(Error::Image(format!(
            "frame is {}x{}, the metadata wants {}x{}",
            got.0, got.1, wanted.0, wanted.1
        ))),
        ResolutionPolicy::Resize => Ok(Cow::Borrowed(frame)),
        ResolutionPolicy::Letterbox => letterbox(frame, wanted).map(Cow::Owned),
    }
}

fn letterbox(frame: &Frame, (width, height): (usize, usize)) -> Result<Frame> {
    let sides = [frame.width(), frame.height(), width, height];
    if sides.iter().any(|side| *side > MAX_SIDE) || width == 0 || height == 0 {
        return Err(Error::Image(format!(
            "cannot letterbox {}x{} to {width}x{height}: sides must be 1 to {MAX_SIDE}",
            frame.width(),
            frame.height()
        )));
    }
    let (content_width, content_height) = content_size((frame.width(), frame.height()), (width, height));
    let (left, top) = ((width - content_width) / 2, (height - content_height) / 2);

    let mut rgb = vec![0; width * height * CHANNELS];
    let mut rows = rgb.chunks_exact_mut(width * CHANNELS).skip(top);
    let whole = CropBox { top: 0, left: 0, height: frame.height(), width: frame.width() };
    Resize::new((whole.width, whole.height), (content_width, content_height)).run(frame, whole, |row| {
        let Some(target) = rows.next() else { return };
        for (byte, value) in target[left * CHANNELS..].iter_mut().zip(row) {
            *byte = (value * 255.0).round() as u8;
        }
    });
    Frame::new(width, height, rgb)
}

/// The largest size within `wanted` that keeps the aspect ratio of `got`, rounded to the nearest pixel.
fn content_size(got: (usize, usize), wanted: (usize, usize)) -> (usize, usize) {
    // Sides are at most MAX_SIDE, so the products fit.
    let scaled = |side: usize, by: usize, over: usize| ((side * by + over / 2) / over).max(1);
    if wanted.0 * got.1 <= wanted.1 * got.0 {
        (wanted.0, scaled(got.1, wanted.0, got.0).min(wanted.1))
    } else {
        (scaled(got.0, wanted.1, got.1).min(wanted.0), wanted.1)
    }
}
