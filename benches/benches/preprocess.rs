//! Image preprocessing per frame size: PNG decode, crop and resize to 224x224, normalisation, each on its own.
//!
//! Frames are made here: smooth gradients with noise in the low bits, which compress about as camera pictures do.

use std::hint::black_box;
use std::io::Cursor;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gr00t_host::image::{EvalTransform, Frame, normalize};
use image::{ImageFormat, RgbImage};

/// Sizes of the GR1 datasets, of a common camera, and of HD.
const SIZES: [(u32, u32); 3] = [(256, 256), (640, 480), (1280, 720)];
/// Side of the vision tower's input.
const IMAGE_SIZE: usize = 224;

fn picture(width: u32, height: u32) -> RgbImage {
    let mut noise = 1u32;
    RgbImage::from_fn(width, height, |x, y| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let low = noise >> 29;
        image::Rgb([x / 6 + low, y / 4 + low, (x + y) / 9 + low].map(|v| v.min(255) as u8))
    })
}

fn encoded(picture: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("an RGB picture encodes");
    bytes.into_inner()
}

fn preprocess(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("preprocess");
    let transform = EvalTransform::new(IMAGE_SIZE);
    for (width, height) in SIZES {
        let size = format!("{width}x{height}");
        let picture = picture(width, height);
        for (format, name) in [(ImageFormat::Png, "decode_png"), (ImageFormat::Jpeg, "decode_jpeg")] {
            let bytes = encoded(&picture, format);
            group.bench_with_input(BenchmarkId::new(name, &size), &bytes, |bencher, bytes| {
                bencher.iter(|| Frame::decode(black_box(bytes)).expect("decodes"));
            });
        }
        let frame = Frame::new(width as usize, height as usize, picture.into_raw()).expect("a whole frame");
        group.bench_with_input(BenchmarkId::new("resize", &size), &frame, |bencher, frame| {
            bencher.iter(|| transform.resized_u8(black_box(frame)).expect("resizes"));
        });
    }
    let rgb = vec![100; IMAGE_SIZE * IMAGE_SIZE * 3];
    let mut pixels = vec![0.0; rgb.len()];
    group.bench_function("normalize", |bencher| {
        bencher.iter(|| normalize(black_box(&rgb), black_box(&mut pixels)).expect("lengths agree"));
    });
    group.finish();
}

criterion_group!(benches, preprocess);
criterion_main!(benches);
