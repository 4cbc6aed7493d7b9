//! One value of an observation → frames, a row of numbers, or text. Errors say what came and what was wanted.

use gr00t_host::image::Frame;
use gr00t_host::observation::Values;

use super::array::Elements;
use super::value::Value;

/// Colour channels of a frame.
const RGB: usize = 3;

/// Numbers with a shape, as an array or as nested lists.
pub(super) struct Numbers {
    pub(super) shape: Vec<usize>,
    elements: Elements,
}

impl Numbers {
    pub(super) fn new(value: Value, wanted: &str) -> Result<Self, String> {
        let got = value.kind();
        let refusal = || format!("got {got}, wanted {wanted}");
        let (shape, elements) = match value {
            Value::Array(array) => array.into_parts(),
            Value::Int(_) | Value::Float(_) | Value::List(_) => {
                let mut shape = Vec::new();
                let mut flat = Vec::new();
                flatten(&value, 0, &mut shape, &mut flat)
                    .ok_or_else(|| format!("{}, all of the same length", refusal()))?;
                (shape, Elements::F64(flat))
            }
            _ => return Err(refusal()),
        };
        Ok(Self { shape, elements })
    }

    /// Rows `[…, dim]` of states, one per robot: leading dimensions are 1, but for the batch's.
    pub(super) fn rows(self, batch: Option<usize>) -> Result<Vec<Values>, String> {
        let (lead, dim) = match self.shape.split_last() {
            Some((&dim, lead)) => (lead, dim),
            None => (&[][..], 1),
        };
        let count = leading(lead, batch, "[…, dim]", &self.shape)?;
        Ok(match self.elements {
            Elements::F32(v) => split(v, count, dim).map(Values::F32).collect(),
            Elements::F16(v) => {
                split(v.into_iter().map(f32::from).collect(), count, dim).map(Values::F32).collect()
            }
            other => {
                let got = other.dtype();
                let doubles = doubles(other).ok_or_else(|| format!("got {got}, wanted floats"))?;
                split(doubles, count, dim).map(Values::F64).collect()
            }
        })
    }

    /// Frames `[…, height, width, 3]`, one per robot.
    pub(super) fn frames(self, batch: Option<usize>) -> Result<Vec<Frame>, String> {
        let shape = self.shape;
        let Some((lead, &[height, width, channels])) = shape.split_last_chunk() else {
            return Err(format!("got shape {shape:?}, wanted [1, height, width, 3]"));
        };
        if channels != RGB {
            let hint = match (height, channels) {
                (RGB, _) => " (channels come first: transpose to height, width, channels)",
                (_, 1) => " (grey: repeat the channel three times)",
                (_, 4) => " (RGBA: drop the last channel)",
                _ => "",
            };
            return Err(format!("got shape {shape:?}, wanted [1, height, width, 3]{hint}"));
        }
        if height == 0 || width == 0 {
            return Err(format!("got shape {shape:?}, a frame without pixels"));
        }
        let count = leading(lead, batch, "[1, height, width, 3]", &shape)?;
        let got = self.elements.dtype();
        let pixels = match self.elements {
            Elements::U8(pixels) => pixels,
            Elements::F16(_) | Elements::F32(_) => return Err(not_pixels(&got.to_string())),
            other => doubles(other)
                .and_then(|values| values.into_iter().map(pixel).collect())
                .ok_or_else(|| not_pixels(&got.to_string()))?,
        };
        let size = height.saturating_mul(width).saturating_mul(RGB);
        split(pixels, count, size)
            .map(|rgb| Frame::new(width, height, rgb).map_err(|e| e.to_string()))
            .collect()
    }
}

fn not_pixels(got: &str) -> String {
    format!("got {got}, wanted uint8 (whole numbers from 0 to 255)")
}

fn pixel(value: f64) -> Option<u8> {
    (value.fract() == 0.0 && (0.0..=255.0).contains(&value)).then_some(value as u8)
}

/// Checks the dimensions before a field's own; returns how many fields there are.
fn leading(lead: &[usize], batch: Option<usize>, wanted: &str, shape: &[usize]) -> Result<usize, String> {
    let (count, steps) = match (batch, lead) {
        (None, lead) => (1, lead),
        (Some(batch), [first, steps @ ..]) if *first == batch => (batch, steps),
        (Some(batch), _) => {
            return Err(format!("got shape {shape:?}, wanted a batch of {batch} in front of {wanted}"));
        }
    };
    if steps.iter().any(|&length| length != 1) {
        return Err(format!(
            "got shape {shape:?}, wanted {wanted}: one time step, and a batch only if all have it"
        ));
    }
    Ok(count)
}

/// `count` pieces of `size`; the one piece that most requests have is not copied.
fn split<T: Clone>(values: Vec<T>, count: usize, size: usize) -> impl Iterator<Item = Vec<T>> {
    let pieces = if count == 1 {
        vec![values]
    } else {
        (0..count).map(|i| values.get(i * size..(i + 1) * size).unwrap_or_default().to_vec()).collect()
    };
    pieces.into_iter()
}

fn doubles(elements: Elements) -> Option<Vec<f64>> {
    Some(match elements {
        Elements::F64(v) => v,
        Elements::U8(v) => v.into_iter().map(f64::from).collect(),
        Elements::U16(v) => v.into_iter().map(f64::from).collect(),
        Elements::U32(v) => v.into_iter().map(f64::from).collect(),
        Elements::U64(v) => v.into_iter().map(|x| x as f64).collect(),
        Elements::I8(v) => v.into_iter().map(f64::from).collect(),
        Elements::I16(v) => v.into_iter().map(f64::from).collect(),
        Elements::I32(v) => v.into_iter().map(f64::from).collect(),
        Elements::I64(v) => v.into_iter().map(|x| x as f64).collect(),
        Elements::F16(v) => v.into_iter().map(f64::from).collect(),
        Elements::F32(v) => v.into_iter().map(f64::from).collect(),
        Elements::Bool(_) | Elements::Text(_) => return None,
    })
}

/// Nested lists of numbers, row-major. `None` if ragged or not of numbers.
fn flatten(value: &Value, depth: usize, shape: &mut Vec<usize>, flat: &mut Vec<f64>) -> Option<()> {
    match value {
        Value::List(items) => {
            if flat.is_empty() && shape.len() == depth {
                shape.push(items.len());
            }
            (shape.get(depth) == Some(&items.len())).then_some(())?;
            items.iter().try_for_each(|item| flatten(item, depth + 1, shape, flat))
        }
        Value::Int(_) | Value::Float(_) if shape.len() != depth => None,
        Value::Int(x) => {
            flat.push(*x as f64);
            Some(())
        }
        Value::Float(x) => {
            flat.push(*x);
            Some(())
        }
        _ => None,
    }
}

/// Number of dimensions, of arrays and of nested lists.
pub(super) fn rank(value: &Value) -> usize {
    match value {
        Value::Array(array) => array.shape().len(),
        Value::List(items) => 1 + items.first().map_or(0, rank),
        _ => 0,
    }
}

/// Length of the first dimension.
pub(super) fn first_length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(array) => array.shape().first().copied(),
        Value::List(items) => Some(items.len()),
        _ => None,
    }
}

/// The instructions, one per robot: text, or lists or an array of it.
pub(super) fn texts(value: &Value, batch: Option<usize>) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    collect_texts(value, &mut texts).ok_or_else(|| format!("got {}, wanted text", value.kind()))?;
    let wanted = batch.unwrap_or(1);
    match texts.as_slice() {
        all if all.len() == wanted => Ok(texts),
        [one] => Ok(vec![one.clone(); wanted]),
        all => Err(format!("got {} texts, wanted {wanted}", all.len())),
    }
}

fn collect_texts(value: &Value, out: &mut Vec<String>) -> Option<()> {
    match value {
        Value::Text(text) => out.push(text.clone()),
        Value::List(items) => items.iter().try_for_each(|item| collect_texts(item, out))?,
        Value::Array(array) => match array.elements() {
            Elements::Text(texts) => out.extend(texts.iter().cloned()),
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}
