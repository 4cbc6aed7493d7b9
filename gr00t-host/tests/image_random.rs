//! Random bytes, broken pictures and arbitrary sizes: a result or an error, never a panic.

use std::io::Cursor;
use std::sync::LazyLock;

use gr00t_host::Error;
use gr00t_host::image::{EvalTransform, Frame, ResolutionPolicy, fit};
use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::prelude::*;

/// Whole pictures of every format, with sizes that fill and that do not fill JPEG's blocks.
static PICTURES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Bmp];
    let sizes = [(17, 9), (40, 24)];
    formats.iter().flat_map(|format| sizes.map(|size| encode(size, *format))).collect()
});

fn encode((width, height): (u32, u32), format: ImageFormat) -> Vec<u8> {
    let picture =
        RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 29) as u8, (y * 17) as u8, (x * y) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut bytes, format).expect("encodes");
    bytes.into_inner()
}

/// Decodes; an error must be a one-line [`Error::Image`].
fn decode(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Frame::decode(bytes) {
        Ok(frame) => prop_assert_eq!(frame.rgb().len(), frame.width() * frame.height() * 3),
        Err(error) => {
            prop_assert!(matches!(error, Error::Image(_)));
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        decode(&bytes)?;
    }

    #[test]
    fn arbitrary_bytes_after_a_signature_decode_or_fail(
        picture in any::<prop::sample::Index>(),
        kept in 2..40usize,
        tail in prop::collection::vec(any::<u8>(), 0..512),
    ) {
        let picture = picture.get(&PICTURES);
        decode(&[&picture[..kept], &tail].concat())?;
    }

    #[test]
    fn mutated_pictures_decode_or_fail(
        picture in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = picture.get(&PICTURES).clone();
        for (index, byte) in edits {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        decode(&bytes)?;
    }

    #[test]
    fn mutated_headers_decode_or_fail(
        picture in any::<prop::sample::Index>(),
        edits in prop::collection::vec((2..64usize, any::<u8>()), 1..4),
    ) {
        let mut bytes = picture.get(&PICTURES).clone();
        for (index, byte) in edits {
            bytes[index] = byte;
        }
        decode(&bytes)?;
    }

    #[test]
    fn any_size_goes_through_the_chain_or_fails(
        (width, height) in (1..400usize, 1..400usize),
        image_size in 0..64usize,
        wanted in (0..64usize, 0..64usize),
        value in any::<u8>(),
    ) {
        let frame = Frame::new(width, height, vec![value; width * height * 3]).unwrap();
        let transform = EvalTransform::new(image_size);
        if let Ok(rgb) = transform.resized_u8(&frame) {
            prop_assert_eq!(rgb.len(), image_size * image_size * 3);
            prop_assert!(rgb.iter().all(|got| *got == value || got + 1 == value));
        } else {
            prop_assert!(width == 1 || height == 1 || image_size == 0);
        }
        if let Ok(fitted) = fit(&frame, Some(wanted), ResolutionPolicy::Letterbox) {
            prop_assert_eq!((fitted.width(), fitted.height()), wanted);
        } else {
            prop_assert!(wanted.0 == 0 || wanted.1 == 0);
        }
    }
}
