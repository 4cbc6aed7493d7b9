//! The eval chain against NVIDIA's (`golden/host`: `images_u8`, `images_resized_f32_before_truncation`,
//! `images.json`, made with torch 2.5.1 and torchvision).

use std::path::{Path, PathBuf};

use gr00t_host::image::{CropBox, EvalTransform, Frame, normalize};
use safetensors::SafeTensors;

const IMAGE_SIZE: usize = 224;

fn golden() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/host")).to_path_buf();
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is absent", path.display());
    None
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(path.as_ref()).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == extension)
}

/// The lossless file of a golden image: itself, or libjpeg-turbo's decode of it.
fn lossless(folder: &Path, name: &str) -> Frame {
    let file = if has_extension(name, "jpg") { format!("{name}.decoded.png") } else { name.to_owned() };
    Frame::decode(&read(folder.join("images").join(file))).expect("a golden image decodes")
}

#[test]
fn resized_u8_equals_nvidias_for_every_lossless_image() {
    let Some(folder) = golden() else { return };
    let bytes = read(folder.join("images_u8.safetensors"));
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert!(!tensors.is_empty());
    for (name, wanted) in tensors.iter() {
        let got = EvalTransform::new(IMAGE_SIZE).resized_u8(&lossless(&folder, name)).unwrap();
        let differing = got.iter().zip(wanted.data()).filter(|(got, wanted)| got != wanted).count();
        assert_eq!((got.len(), differing), (wanted.data().len(), 0), "{name}");
    }
}

#[test]
fn resized_f32_equals_nvidias_bit_for_bit() {
    let Some(folder) = golden() else { return };
    let bytes = read(folder.join("images_resized_f32_before_truncation.safetensors"));
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert!(!tensors.is_empty());
    for (name, wanted) in tensors.iter() {
        let got = EvalTransform::new(IMAGE_SIZE).resized_f32(&lossless(&folder, name)).unwrap();
        let wanted: Vec<f32> =
            wanted.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let plane = IMAGE_SIZE * IMAGE_SIZE;
        assert_eq!(got.len(), wanted.len());
        let differing =
            (0..got.len()).filter(|&i| got[i].to_bits() != wanted[i % 3 * plane + i / 3].to_bits()).count();
        assert_eq!(differing, 0, "{name}");
    }
}

#[test]
fn crop_boxes_equal_nvidias() {
    let Some(folder) = golden() else { return };
    let json: serde_json::Value = serde_json::from_slice(&read(folder.join("images.json"))).unwrap();
    let cases = json["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let number = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let got = EvalTransform::new(IMAGE_SIZE).crop_box(number(&case["width"]), number(&case["height"]));
        let [top, left, height, width] = [0, 1, 2, 3].map(|i| number(&case["crop"][i]));
        assert_eq!(got, CropBox { top, left, height, width }, "{}", case["file"]);
    }
}

#[test]
fn pixel_values_equal_the_eagle_processors() {
    let Some(folder) = golden() else { return };
    let json: serde_json::Value = serde_json::from_slice(&read(folder.join("images.json"))).unwrap();
    for (byte, wanted) in json["pixel_value_of_u8"].as_object().unwrap() {
        let mut got = [0.0; 3];
        normalize(&[byte.parse().unwrap(); 3], &mut got).unwrap();
        assert_eq!(f64::from(got[1]), wanted.as_f64().unwrap(), "{byte}");
    }
}

/// From the JPEG itself the pixels depend on the decoder; they stay within 3 of libjpeg-turbo's, and within 3
/// after the resize.
#[test]
fn jpeg_stays_near_libjpeg_turbo() {
    let Some(folder) = golden() else { return };
    let bytes = read(folder.join("images_u8.safetensors"));
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut names: Vec<_> = tensors.names().into_iter().filter(|n| has_extension(n, "jpg")).collect();
    names.sort_unstable();
    assert!(!names.is_empty());
    for name in names {
        let decoded = Frame::decode(&read(folder.join("images").join(name))).unwrap();
        let resized = EvalTransform::new(IMAGE_SIZE).resized_u8(&decoded).unwrap();
        let pixels = difference(decoded.rgb(), lossless(&folder, name).rgb());
        let result = difference(&resized, tensors.tensor(name).unwrap().data());
        println!(
            "{name}: decoded {:.2} % differ, max {}; resized {:.2} % differ, max {}",
            pixels.0, pixels.1, result.0, result.1
        );
        assert!(pixels.1 <= 3 && result.1 <= 3, "{name}");
    }
}

/// Share of differing values in percent, and the largest difference.
fn difference(got: &[u8], wanted: &[u8]) -> (f64, u8) {
    assert_eq!(got.len(), wanted.len());
    let differences = || got.iter().zip(wanted).map(|(got, wanted)| got.abs_diff(*wanted));
    let differing = differences().filter(|d| *d > 0).count();
    (100.0 * differing as f64 / got.len() as f64, differences().max().unwrap_or(0))
}
