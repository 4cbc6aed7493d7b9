//! An n-dimensional array as NumPy has them, in C order and native byte order, whatever it came in.

use half::f16;

use super::dtype::{Descr, Dtype};
use super::error::{CodecError, Result};

/// Most dimensions, as NumPy before 2.0.
const MAX_RANK: usize = 32;
/// Most elements of a text array: one instruction per robot of a batch is what is sent.
const MAX_TEXTS: usize = 4096;

/// Shape and elements, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    elements: Elements,
}

/// The elements of an [`Array`], by dtype.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of Dtype")]
pub enum Elements {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Text(Vec<String>),
}

/// Runs `$body` with `$v` bound to the vector of numbers; `$text` and `$bool` are the other two.
macro_rules! by_dtype {
    ($elements:expr, $v:ident => $body:expr, bool $b:ident => $bool:expr, text $t:ident => $text:expr) => {
        match $elements {
            Elements::Bool($b) => $bool,
            Elements::U8($v) => $body,
            Elements::U16($v) => $body,
            Elements::U32($v) => $body,
            Elements::U64($v) => $body,
            Elements::I8($v) => $body,
            Elements::I16($v) => $body,
            Elements::I32($v) => $body,
            Elements::I64($v) => $body,
            Elements::F16($v) => $body,
            Elements::F32($v) => $body,
            Elements::F64($v) => $body,
            Elements::Text($t) => $text,
        }
    };
}

impl Array {
    /// An array from its elements in C order.
    ///
    /// # Errors
    /// [`CodecError::Array`] if the shape has another number of elements or too many dimensions.
    pub fn new(shape: Vec<usize>, elements: Elements) -> Result<Self> {
        let wanted = element_count(&shape)?;
        if wanted != elements.len() {
            return Err(CodecError::Array(format!(
                "shape {shape:?} has {wanted} elements, got {}",
                elements.len()
            )));
        }
        Ok(Self { shape, elements })
    }

    /// Length along each dimension; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in C order.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// Shape and elements, without a copy.
    pub fn into_parts(self) -> (Vec<usize>, Elements) {
        (self.shape, self.elements)
    }

    /// What the elements are; text has the length of the longest.
    pub fn dtype(&self) -> Dtype {
        self.elements.dtype()
    }

    /// An array from the bytes of NumPy's buffer.
    pub(crate) fn from_bytes(
        descr: Descr,
        shape: Vec<usize>,
        fortran_order: bool,
        bytes: &[u8],
    ) -> Result<Self> {
        let count = element_count(&shape)?;
        let item = descr.dtype.item_bytes();
        if count.checked_mul(item) != Some(bytes.len()) {
            return Err(CodecError::Array(format!(
                "shape {shape:?} of {} does not fit {} bytes",
                descr.dtype,
                bytes.len()
            )));
        }
        let reordered;
        let bytes = if fortran_order && shape.len() > 1 && !bytes.is_empty() {
            reordered = to_c_order(&shape, item, bytes);
            &reordered
        } else {
            bytes
        };
        let elements = Elements::from_bytes(descr, count, bytes)?;
        Ok(Self { shape, elements })
    }

    /// The bytes of NumPy's buffer: C order, little-endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        by_dtype!(
            &self.elements,
            v => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            bool v => v.iter().map(|&x| u8::from(x)).collect(),
            text v => {
                let Dtype::Text(width) = self.dtype() else { return Vec::new() };
                v.iter().flat_map(|s| padded(s, width)).collect()
            }
        )
    }
}

/// Code units of `text`, with NULs up to `width`.
fn padded(text: &str, width: usize) -> impl Iterator<Item = u8> {
    text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width).flat_map(u32::to_le_bytes)
}

/// Number of elements of `shape`.
fn element_count(shape: &[usize]) -> Result<usize> {
    if shape.len() > MAX_RANK {
        return Err(CodecError::Array(format!("{} dimensions, at most {MAX_RANK}", shape.len())));
    }
    shape
        .iter()
        .try_fold(1_usize, |n, &d| n.checked_mul(d))
        .ok_or_else(|| CodecError::Array(format!("shape {shape:?} has more elements than memory")))
}

/// Items of a Fortran-ordered buffer of non-empty `shape` in C order.
fn to_c_order(shape: &[usize], item: usize, bytes: &[u8]) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for &length in shape {
        strides.push(stride);
        stride *= length;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0_usize; shape.len()];
    let mut at = 0;
    for _ in 0..stride {
        out.extend_from_slice(bytes.get(at * item..(at + 1) * item).unwrap_or_default());
        for (dimension, (&length, &stride)) in shape.iter().zip(&strides).enumerate().rev() {
            index[dimension] += 1;
            at += stride;
            if index[dimension] < length {
                break;
            }
            at -= stride * length;
            index[dimension] = 0;
        }
    }
    out
}

impl Elements {
    /// Number of elements.
    pub fn len(&self) -> usize {
        by_dtype!(self, v => v.len(), bool v => v.len(), text v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the elements are; text has the length of the longest.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Bool(_) => Dtype::Bool,
            Self::U8(_) => Dtype::U8,
            Self::U16(_) => Dtype::U16,
            Self::U32(_) => Dtype::U32,
            Self::U64(_) => Dtype::U64,
            Self::I8(_) => Dtype::I8,
            Self::I16(_) => Dtype::I16,
            Self::I32(_) => Dtype::I32,
            Self::I64(_) => Dtype::I64,
            Self::F16(_) => Dtype::F16,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
            // NumPy has no text of no characters: its empty strings are <U1
            Self::Text(v) => Dtype::Text(v.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1)),
        }
    }

    fn from_bytes(descr: Descr, count: usize, bytes: &[u8]) -> Result<Self> {
        macro_rules! numbers {
            ($variant:ident, $t:ty) => {{
                let read = if descr.big_endian { <$t>::from_be_bytes } else { <$t>::from_le_bytes };
                Self::$variant(bytes.as_chunks().0.iter().map(|&chunk| read(chunk)).collect())
            }};
        }
        Ok(match descr.dtype {
            Dtype::Bool => Self::Bool(bytes.iter().map(|&b| b != 0).collect()),
            Dtype::U8 => Self::U8(bytes.to_vec()),
            Dtype::I8 => numbers!(I8, i8),
            Dtype::U16 => numbers!(U16, u16),
            Dtype::U32 => numbers!(U32, u32),
            Dtype::U64 => numbers!(U64, u64),
            Dtype::I16 => numbers!(I16, i16),
            Dtype::I32 => numbers!(I32, i32),
            Dtype::I64 => numbers!(I64, i64),
            Dtype::F16 => numbers!(F16, f16),
            Dtype::F32 => numbers!(F32, f32),
            Dtype::F64 => numbers!(F64, f64),
            Dtype::Text(width) => Self::Text(texts(descr, width, count, bytes)?),
        })
    }
}

fn texts(descr: Descr, width: usize, count: usize, bytes: &[u8]) -> Result<Vec<String>> {
    if count > MAX_TEXTS {
        return Err(CodecError::TooLarge {
            what: "number of texts in an array",
            got: count,
            most: MAX_TEXTS,
        });
    }
    if width == 0 {
        return Ok(vec![String::new(); count]);
    }
    bytes.chunks_exact(descr.dtype.item_bytes()).map(|item| text(descr, item)).collect()
}

/// One text element, without the NULs at its end.
fn text(descr: Descr, item: &[u8]) -> Result<String> {
    let read = if descr.big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
    let mut out = String::new();
    for unit in item.as_chunks().0.iter().map(|&unit| read(unit)) {
        let character = char::from_u32(unit)
            .ok_or_else(|| CodecError::Array(format!("text holds {unit:#x}, which is no character")))?;
        out.push(character);
    }
    out.truncate(out.trim_end_matches('\0').len());
    Ok(out)
}
