//! `images/`, `images_u8.safetensors` and what lies beside them: the eval image chain, bit for bit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use gr00t_host::image::{EvalTransform, Frame, normalize};
use gr00t_host::read_capped;
use serde::Deserialize;

use super::json;
use crate::verify::golden::Golden;
use crate::verify::report::Row;

/// The expected images, by file name below `images/`.
pub(super) const FILE: &str = "images_u8.safetensors";
const IMAGES: &str = "images";
/// The same before truncation to bytes.
const RESIZED_FILE: &str = "images_resized_f32_before_truncation.safetensors";
/// Crop boxes and the normalisation of single values.
const NOTES_FILE: &str = "images.json";
/// Appended to a JPEG's name: its pixels as libjpeg-turbo decodes them.
const DECODED: &str = ".decoded.png";
/// Largest image file that is read.
const MAX_IMAGE_BYTES: u64 = 256 << 20;

#[derive(Deserialize)]
struct Notes {
    #[serde(default)]
    pixel_value_of_u8: BTreeMap<u8, f32>,
    cases: Vec<NotedCase>,
}

#[derive(Deserialize)]
struct NotedCase {
    file: String,
    width: usize,
    height: usize,
    /// Top, left, height, width.
    crop: [usize; 4],
}

/// One row per image and kind of value.
pub(super) fn rows(path: &Path) -> Result<Vec<Row>> {
    let dir = path.parent().context("no folder")?;
    let golden = Golden::read(path)?;
    let mut rows = Vec::new();
    for file in golden.names() {
        rows.push(kept(&format!("image {file}"), truncated(dir, file, &golden)));
        if is_jpeg(file) {
            let name = format!("image {file}, decoded here");
            rows.push(jpeg(&name, dir, file, &golden).unwrap_or_else(|e| Row::fail(&name, format!("{e:#}"))));
        }
    }
    rows.extend(unjudged(dir, &golden)?);
    if dir.join(RESIZED_FILE).exists() {
        rows.extend(resized(dir)?);
    }
    if dir.join(NOTES_FILE).exists() {
        rows.extend(noted(dir, &golden)?);
    }
    Ok(rows)
}

/// One row per picture that nothing is known of.
fn unjudged(dir: &Path, golden: &Golden) -> Result<Vec<Row>> {
    let images = dir.join(IMAGES);
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(&images).with_context(|| images.display().to_string())? {
        let file = entry.with_context(|| images.display().to_string())?.file_name();
        let file = file.to_string_lossy();
        if golden.get(file.strip_suffix(DECODED).unwrap_or(&file)).is_none() {
            rows.push(Row::info(format!("image {file}"), format!("not in {FILE}")));
        }
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

fn kept(name: &str, outcome: Result<(usize, usize)>) -> Row {
    match outcome {
        Ok((equal, total)) => Row::equal(name, equal, total),
        Err(error) => Row::fail(name, format!("{error:#}")),
    }
}

/// Crop, resize and truncation of the image's exact pixels.
fn truncated(dir: &Path, file: &str, golden: &Golden) -> Result<(usize, usize)> {
    let (size, expected) = expected_u8(golden, file)?;
    let got = EvalTransform::new(size).resized_u8(&lossless(dir, file)?)?;
    count_equal(&got, expected)
}

/// The same from the JPEG itself, where the decoder may differ: shown, not judged, unless it cannot be decoded.
fn jpeg(name: &str, dir: &Path, file: &str, golden: &Golden) -> Result<Row> {
    let (size, expected) = expected_u8(golden, file)?;
    let got = EvalTransform::new(size).resized_u8(&decode(&dir.join(IMAGES).join(file))?)?;
    let (equal, total) = count_equal(&got, expected)?;
    let most = got.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    Ok(Row::info(name, format!("{equal} of {total} equal, largest difference {most}")))
}

/// The values before truncation, which the golden file keeps as `[3, H, W]`.
fn resized(dir: &Path) -> Result<Vec<Row>> {
    let golden = Golden::read(&dir.join(RESIZED_FILE))?;
    let count = |file: &str| -> Result<(usize, usize)> {
        let (shape, expected) = golden.f32(file)?;
        let [3, size, width] = *shape else { bail!("golden {shape:?}, wanted [3, H, W]") };
        if width != size {
            bail!("golden {shape:?}, wanted a square");
        }
        let got = EvalTransform::new(size).resized_f32(&lossless(dir, file)?)?;
        let planes: Vec<u32> =
            (0..3).flat_map(|c| got.iter().skip(c).step_by(3).map(|v| v.to_bits())).collect();
        count_equal(&planes, &expected.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
    };
    Ok(golden.names().map(|file| kept(&format!("image {file}, before truncation"), count(file))).collect())
}

/// Crop boxes, sizes and the normalisation of single values.
fn noted(dir: &Path, golden: &Golden) -> Result<Vec<Row>> {
    let notes: Notes = json::read(&dir.join(NOTES_FILE))?;
    let mut equal = 0;
    let mut rows = Vec::new();
    for case in &notes.cases {
        let crop = EvalTransform::new(1).crop_box(case.width, case.height);
        let boxed = [crop.top, crop.left, crop.height, crop.width] == case.crop;
        // One that cannot be read has said so in a row of its own.
        let size = lossless(dir, &case.file).ok().map(|frame| (frame.width(), frame.height()));
        equal += usize::from(boxed && size == Some((case.width, case.height)));
    }
    rows.push(Row::equal("image sizes and crop boxes", equal, notes.cases.len()));
    let noted: BTreeSet<&str> = notes.cases.iter().map(|c| c.file.as_str()).collect();
    for file in noted.iter().filter(|file| golden.get(file).is_none()) {
        rows.push(Row::fail(format!("image {file}"), format!("in {NOTES_FILE}, not in {FILE}")));
    }
    if !notes.pixel_value_of_u8.is_empty() {
        let mut equal = 0;
        for (&byte, &expected) in &notes.pixel_value_of_u8 {
            let mut out = [0.0; 3];
            normalize(&[byte; 3], &mut out)?;
            equal += usize::from(out.iter().all(|v| v.to_bits() == expected.to_bits()));
        }
        rows.push(Row::equal("pixel value of a byte", equal, notes.pixel_value_of_u8.len()));
    }
    Ok(rows)
}

fn expected_u8<'a>(golden: &'a Golden, file: &str) -> Result<(usize, &'a [u8])> {
    let (shape, values) = golden.u8(file)?;
    match *shape {
        [height, width, 3] if height == width => Ok((height, values)),
        _ => bail!("golden {shape:?}, wanted [size, size, 3]"),
    }
}

fn count_equal<T: PartialEq>(got: &[T], expected: &[T]) -> Result<(usize, usize)> {
    if got.len() != expected.len() {
        bail!("{} values, golden {}", got.len(), expected.len());
    }
    Ok((got.iter().zip(expected).filter(|(a, b)| a == b).count(), expected.len()))
}

/// The exact pixels of an image file: of a JPEG, those of its decoded twin.
fn lossless(dir: &Path, file: &str) -> Result<Frame> {
    let name = if is_jpeg(file) { format!("{file}{DECODED}") } else { file.to_string() };
    decode(&dir.join(IMAGES).join(name))
}

fn decode(path: &Path) -> Result<Frame> {
    let bytes = read_capped(path, MAX_IMAGE_BYTES)?;
    Frame::decode(&bytes).with_context(|| path.display().to_string())
}

fn is_jpeg(file: &str) -> bool {
    let extension = Path::new(file).extension();
    extension.is_some_and(|e| e.eq_ignore_ascii_case("jpg") || e.eq_ignore_ascii_case("jpeg"))
}
