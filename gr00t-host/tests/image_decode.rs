//! Decoding of what cameras and users send: pixel kinds, orientation, and files that are no pictures.
//! Every file is encoded here.

use std::io::Cursor;

use gr00t_host::image::{Frame, MAX_SIDE};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat};

/// Exif block (little-endian TIFF) with one entry, the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    block
}

fn png(width: u32, height: u32, pixels: &[u8], color: ExtendedColorType) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes).write_image(pixels, width, height, color).expect("encodes");
    bytes
}

fn gradient(width: u32, height: u32) -> image::RgbImage {
    image::RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 3) as u8, (y * 5) as u8, (x + y) as u8]))
}

fn encode(picture: &image::RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture.clone()).write_to(&mut bytes, format).expect("encodes");
    bytes.into_inner()
}

/// The message of the error that `bytes` must give; it is one line.
fn error(bytes: &[u8]) -> String {
    let message = Frame::decode(bytes).expect_err("is no picture").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn lossless_formats_keep_every_pixel() {
    let picture = gradient(21, 13);
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::WebP] {
        let bytes = if format == ImageFormat::WebP {
            let mut bytes = Vec::new();
            let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut bytes);
            encoder.write_image(&picture, 21, 13, ExtendedColorType::Rgb8).unwrap();
            bytes
        } else {
            encode(&picture, format)
        };
        let frame = Frame::decode(&bytes).unwrap();
        assert_eq!((frame.width(), frame.height()), (21, 13), "{format:?}");
        assert_eq!(frame.rgb(), picture.as_raw().as_slice(), "{format:?}");
    }
}

#[test]
fn jpeg_is_near_its_picture() {
    let picture = gradient(64, 48);
    let frame = Frame::decode(&encode(&picture, ImageFormat::Jpeg)).unwrap();
    assert_eq!((frame.width(), frame.height()), (64, 48));
    let worst = frame.rgb().iter().zip(picture.as_raw()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst.unwrap() < 32, "{worst:?}");
}

#[test]
fn grey_becomes_three_equal_channels() {
    let frame = Frame::decode(&png(2, 1, &[7, 200], ExtendedColorType::L8)).unwrap();
    assert_eq!(frame.rgb(), [7, 7, 7, 200, 200, 200]);

    let mut jpeg = Vec::new();
    JpegEncoder::new(&mut jpeg).write_image(&[90; 64], 8, 8, ExtendedColorType::L8).unwrap();
    assert_eq!(Frame::decode(&jpeg).unwrap().rgb(), [90; 192]);
}

#[test]
fn alpha_is_dropped_without_blending() {
    let frame = Frame::decode(&png(2, 1, &[1, 2, 3, 0, 4, 5, 6, 128], ExtendedColorType::Rgba8)).unwrap();
    assert_eq!(frame.rgb(), [1, 2, 3, 4, 5, 6]);
    let frame = Frame::decode(&png(2, 1, &[9, 0, 8, 128], ExtendedColorType::La8)).unwrap();
    assert_eq!(frame.rgb(), [9, 9, 9, 8, 8, 8]);
}

#[test]
fn sixteen_bits_keep_the_high_byte() {
    let native = |values: &[u16]| values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
    let rgb = native(&[0x12ff, 0x8000, 0xff01]);
    assert_eq!(Frame::decode(&png(1, 1, &rgb, ExtendedColorType::Rgb16)).unwrap().rgb(), [0x12, 0x80, 0xff]);
    let rgba = native(&[0x12ff, 0x8000, 0xff01, 0]);
    assert_eq!(
        Frame::decode(&png(1, 1, &rgba, ExtendedColorType::Rgba16)).unwrap().rgb(),
        [0x12, 0x80, 0xff]
    );
    let grey = native(&[0x7fff]);
    assert_eq!(Frame::decode(&png(1, 1, &grey, ExtendedColorType::L16)).unwrap().rgb(), [0x7f; 3]);
    let grey = native(&[0x7fff, 3]);
    assert_eq!(Frame::decode(&png(1, 1, &grey, ExtendedColorType::La16)).unwrap().rgb(), [0x7f; 3]);
}

/// A BMP of 8 bits per pixel and two palette entries.
#[test]
fn palette_becomes_its_colours() {
    let mut bmp = b"BM".to_vec();
    let offset = 14 + 40 + 2 * 4u32;
    bmp.extend((offset + 4).to_le_bytes());
    bmp.extend([0; 4]);
    bmp.extend(offset.to_le_bytes());
    for field in [40u32, 2, 1, 1 | 8 << 16, 0, 4, 0, 0, 2, 0] {
        bmp.extend(field.to_le_bytes());
    }
    bmp.extend([30, 20, 10, 0, 60, 50, 40, 0]);
    bmp.extend([1, 0, 0, 0]);
    assert_eq!(Frame::decode(&bmp).unwrap().rgb(), [40, 50, 60, 10, 20, 30]);
}

/// A 2x1 PNG of a red and a blue pixel: where red lands shows each of the eight orientations.
#[test]
fn exif_orientation_makes_the_frame_upright() {
    let (red, blue) = ([255, 0, 0], [0, 0, 255]);
    let pixels = [red, blue].concat();
    let wide = |first: [u8; 3], second: [u8; 3]| (2, 1, [first, second].concat());
    let tall = |first: [u8; 3], second: [u8; 3]| (1, 2, [first, second].concat());
    let wanted = [
        wide(red, blue),
        wide(blue, red),
        wide(blue, red),
        wide(red, blue),
        tall(red, blue),
        tall(red, blue),
        tall(blue, red),
        tall(blue, red),
    ];
    for (orientation, wanted) in (1u8..).zip(wanted) {
        let mut bytes = Vec::new();
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_exif_metadata(exif(orientation)).unwrap();
        encoder.write_image(&pixels, 2, 1, ExtendedColorType::Rgb8).unwrap();
        let frame = Frame::decode(&bytes).unwrap();
        assert_eq!((frame.width(), frame.height(), frame.rgb().to_vec()), wanted, "{orientation}");
    }
}

#[test]
fn exif_orientation_of_a_jpeg_is_applied() {
    let picture = gradient(32, 16);
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new(&mut bytes);
    encoder.set_exif_metadata(exif(6)).unwrap();
    encoder.write_image(&picture, 32, 16, ExtendedColorType::Rgb8).unwrap();
    let plain = Frame::decode(&encode(&picture, ImageFormat::Jpeg)).unwrap();
    let turned = Frame::decode(&bytes).unwrap();
    assert_eq!((turned.width(), turned.height()), (16, 32));
    // A quarter turn clockwise: the top left corner comes to the top right.
    let distance = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(distance(&turned.rgb()[15 * 3..16 * 3], &plain.rgb()[..3]) < 16);
    assert!(distance(&turned.rgb()[..3], &plain.rgb()[15 * 32 * 3..][..3]) < 16);
}

#[test]
fn one_pixel_decodes() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Bmp] {
        let frame = Frame::decode(&encode(&gradient(1, 1), format)).unwrap();
        assert_eq!((frame.width(), frame.height(), frame.rgb().len()), (1, 1, 3), "{format:?}");
    }
}

#[test]
fn no_picture_is_a_clear_error() {
    assert_eq!(error(b""), "image: 0 bytes");
    assert_eq!(error(b"hello"), "image: not a PNG, JPEG, WebP or BMP: starts with 68 65 6c 6c");
    assert_eq!(error(b"\xff"), "image: not a PNG, JPEG, WebP or BMP: starts with ff");
    assert!(error(b"\x89PNG\r\n\x1a\n").starts_with("image: broken png: "));
    assert!(error(b"\xff\xd8\xff\xd9").starts_with("image: broken jpeg: "));
}

#[test]
fn truncated_picture_is_an_error() {
    let picture = gradient(64, 48);
    for (format, name) in [
        (ImageFormat::Png, "png"),
        (ImageFormat::Jpeg, "jpeg"),
        (ImageFormat::Bmp, "bmp"),
        (ImageFormat::WebP, "webp"),
    ] {
        let bytes = encode(&picture, format);
        for kept in [bytes.len() / 2, bytes.len() * 3 / 4, bytes.len() * 9 / 10] {
            let message = error(&bytes[..kept]);
            assert!(message.starts_with(&format!("image: broken {name}: ")), "{message}");
        }
    }
}

#[test]
fn side_above_the_cap_is_an_error_that_names_the_size() {
    let side = 20_000u32;
    assert!(side as usize > MAX_SIDE);
    let flat = vec![0; side as usize];
    assert_eq!(
        error(&png(side, 1, &flat, ExtendedColorType::L8)),
        format!("image: png of 20000x1 has a side above {MAX_SIDE}")
    );
    let mut jpeg = Vec::new();
    JpegEncoder::new(&mut jpeg).write_image(&flat, 1, side, ExtendedColorType::L8).unwrap();
    assert_eq!(error(&jpeg), format!("image: jpeg of 1x20000 has a side above {MAX_SIDE}"));
}

/// Only the header is there: the size is refused before pixels are looked for.
#[test]
fn header_that_announces_too_many_bytes_is_refused() {
    let mut header = png(1, 1, &[0; 8], ExtendedColorType::Rgba16);
    let side = (MAX_SIDE as u32).to_be_bytes();
    header[16..20].copy_from_slice(&side);
    header[20..24].copy_from_slice(&side);
    let checksum = crc32(&header[12..29]);
    header[29..33].copy_from_slice(&checksum.to_be_bytes());
    let message = error(&header);
    assert!(message.contains("decodes to 536870912 bytes, at most 268435456"), "{message}");
}

/// CRC-32 of a PNG chunk.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}
