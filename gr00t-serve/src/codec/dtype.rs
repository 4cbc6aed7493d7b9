//! NumPy's array-protocol type strings (`<f4`, `|u1`, `<U5`); source: NumPy's `numpy.lib.format` and `dtype.str`.

use super::error::{CodecError, Result};
use crate::text::shown;

/// Bytes of one UCS-4 code unit.
const UCS4_BYTES: usize = 4;
/// Longest text element, in characters; instructions have at most 2000.
const MAX_TEXT_CHARS: usize = 1 << 16;

/// What an array's elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// Truth values, one byte each.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Text of at most this many characters, UCS-4, padded with NUL.
    Text(usize),
}

/// A dtype and the byte order that it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descr {
    pub(crate) dtype: Dtype,
    pub(crate) big_endian: bool,
}

impl Descr {
    /// Reads a type string; `float32` and its like are understood too, since `numpy.dtype` understands them.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (big_endian, kind) = match text.as_bytes().first() {
            Some(b'<' | b'|' | b'=') => (false, &text[1..]),
            Some(b'>') => (true, &text[1..]),
            _ => (false, text),
        };
        let dtype = match kind {
            "b1" | "?" | "bool" => Dtype::Bool,
            "u1" | "uint8" => Dtype::U8,
            "u2" | "uint16" => Dtype::U16,
            "u4" | "uint32" => Dtype::U32,
            "u8" | "uint64" => Dtype::U64,
            "i1" | "int8" => Dtype::I8,
            "i2" | "int16" => Dtype::I16,
            "i4" | "int32" => Dtype::I32,
            "i8" | "int64" => Dtype::I64,
            "f2" | "float16" => Dtype::F16,
            "f4" | "float32" => Dtype::F32,
            "f8" | "float64" => Dtype::F64,
            _ => return other(text, kind).map(|dtype| Self { dtype, big_endian }),
        };
        Ok(Self { dtype, big_endian })
    }
}

/// Text, or a refusal that says what is wanted.
fn other(text: &str, kind: &str) -> Result<Dtype> {
    if kind.starts_with('O') || kind == "object" {
        return Err(CodecError::Pickle(format!("dtype {:?} (Python objects)", shown(text))));
    }
    let unsupported = || {
        CodecError::Array(format!(
            "dtype {:?} is not supported, wanted bool, u1 to u8, i1 to i8, f2, f4, f8 or U",
            shown(text)
        ))
    };
    let digits = kind.strip_prefix('U').ok_or_else(unsupported)?;
    match digits.parse::<usize>() {
        Ok(chars) if chars <= MAX_TEXT_CHARS && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(Dtype::Text(chars))
        }
        Ok(chars) => {
            Err(CodecError::TooLarge { what: "text of an array element", got: chars, most: MAX_TEXT_CHARS })
        }
        Err(_) => Err(unsupported()),
    }
}

impl Dtype {
    /// Bytes of one element.
    pub fn item_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Text(chars) => chars.saturating_mul(UCS4_BYTES),
        }
    }

    /// NumPy's type string, little-endian.
    pub fn descr(self) -> String {
        let fixed = match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::Text(chars) => return format!("<U{chars}"),
        };
        fixed.to_owned()
    }
}

impl std::fmt::Display for Dtype {
    /// NumPy's name, as in `float32`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Text(_) => "str",
        })
    }
}
