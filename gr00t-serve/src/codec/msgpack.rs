//! msgpack bytes ↔ a tree of borrowed values, under [`Limits`]. Source: the msgpack specification; markers and
//! the encoder are `rmp`'s.
//!
//! Extension types and integer keys are refused: none of the protocols has them.

use std::collections::HashSet;
use std::convert::Infallible;

use rmp::Marker;
use rmp::encode::{ByteBuf, ValueWriteError};

use super::error::{CodecError, Result};
use super::limits::{Budget, Limits};
use crate::text::{check_key, shown};

/// A decoded message. Text and bytes are the input's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw<'a> {
    Nil,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'a str),
    Bin(&'a [u8]),
    List(Vec<Raw<'a>>),
    Map(Vec<(Key<'a>, Raw<'a>)>),
}

/// A map key. Python writes `b"nd"` and `"nd"` differently, and dialects differ in which they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_bin: bool,
}

impl<'a> Raw<'a> {
    /// The value of `key` in a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Raw<'a>> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(k, _)| k.text == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Text, also where it came as bytes.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Bin(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// A list of lengths.
    pub(crate) fn shape(&self) -> Option<Vec<usize>> {
        let Self::List(items) = self else { return None };
        let length = |item: &Self| match item {
            Self::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        };
        items.iter().map(length).collect()
    }
}

/// Reads one message that fills `bytes`.
pub(crate) fn read(bytes: &[u8], limits: Limits) -> Result<Raw<'_>> {
    limits.check_bytes("msgpack message", bytes.len())?;
    let mut reader = Reader { rest: bytes, budget: Budget::new(limits) };
    let value = reader.value(0)?;
    if !reader.rest.is_empty() {
        return Err(CodecError::Msgpack(format!("{} bytes after the message", reader.rest.len())));
    }
    Ok(value)
}

struct Reader<'a> {
    rest: &'a [u8],
    budget: Budget,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Raw<'a>> {
        self.budget.take(1)?;
        let [marker] = self.array()?;
        Ok(match Marker::from_u8(marker) {
            Marker::Null => Raw::Nil,
            Marker::True => Raw::Bool(true),
            Marker::False => Raw::Bool(false),
            Marker::FixPos(n) => Raw::Int(n.into()),
            Marker::FixNeg(n) => Raw::Int(n.into()),
            Marker::U8 => Raw::Int(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Raw::Int(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Raw::Int(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => Raw::Int(u64::from_be_bytes(self.array()?).into()),
            Marker::I8 => Raw::Int(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Raw::Int(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Raw::Int(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Raw::Int(i64::from_be_bytes(self.array()?).into()),
            Marker::F32 => Raw::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Raw::Float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(n) => Raw::Str(self.str(n.into())?),
            Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                let length = self.length(marker - 0xd9)?;
                Raw::Str(self.str(length)?)
            }
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                let length = self.length(marker - 0xc4)?;
                Raw::Bin(self.bytes(length)?)
            }
            Marker::FixArray(n) => self.list(n.into(), depth)?,
            Marker::Array16 | Marker::Array32 => {
                let length = self.length(marker - 0xdc + 1)?;
                self.list(length, depth)?
            }
            Marker::FixMap(n) => self.map(n.into(), depth)?,
            Marker::Map16 | Marker::Map32 => {
                let length = self.length(marker - 0xde + 1)?;
                self.map(length, depth)?
            }
            Marker::Reserved => {
                return Err(CodecError::Msgpack("marker 0xc1, which msgpack never uses".to_owned()));
            }
            Marker::FixExt1
            | Marker::FixExt2
            | Marker::FixExt4
            | Marker::FixExt8
            | Marker::FixExt16
            | Marker::Ext8
            | Marker::Ext16
            | Marker::Ext32 => {
                return Err(CodecError::Msgpack(format!(
                    "marker {marker:#04x} (an extension type) is not supported"
                )));
            }
        })
    }

    fn list(&mut self, length: usize, depth: usize) -> Result<Raw<'a>> {
        self.promise(length, depth)?;
        Ok(Raw::List((0..length).map(|_| self.value(depth + 1)).collect::<Result<_>>()?))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Raw<'a>> {
        self.promise(length.saturating_mul(2), depth)?;
        let mut seen = HashSet::new();
        let mut pairs = Vec::new();
        for _ in 0..length {
            let key = match self.value(depth + 1)? {
                Raw::Str(text) => Key { text, is_bin: false },
                Raw::Bin(bytes) => {
                    let text = std::str::from_utf8(bytes)
                        .map_err(|_| CodecError::Msgpack("a map key is not UTF-8".to_owned()))?;
                    Key { text, is_bin: true }
                }
                _ => return Err(CodecError::Msgpack("a map key is neither text nor bytes".to_owned())),
            };
            check_key(key.text).map_err(CodecError::Msgpack)?;
            if !seen.insert(key.text) {
                return Err(CodecError::Msgpack(format!("key {} comes twice", shown(key.text))));
            }
            pairs.push((key, self.value(depth + 1)?));
        }
        Ok(Raw::Map(pairs))
    }

    /// Whether `values` more can be in what is left, each at least one byte, and within the limits.
    fn promise(&self, values: usize, depth: usize) -> Result<()> {
        if values > self.rest.len() {
            return Err(self.cut(values));
        }
        self.budget.enter(depth)
    }

    /// A length of 1, 2 or 4 bytes.
    fn length(&mut self, log2_bytes: u8) -> Result<usize> {
        Ok(match log2_bytes {
            0 => u8::from_be_bytes(self.array()?).into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            _ => u32::from_be_bytes(self.array()?) as usize,
        })
    }

    fn str(&mut self, length: usize) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(length)?)
            .map_err(|_| CodecError::Msgpack("a text is not UTF-8".to_owned()))
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.cut(length))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(|| self.cut(N))?;
        self.rest = rest;
        Ok(*head)
    }

    fn cut(&self, wanted: usize) -> CodecError {
        CodecError::Msgpack(format!("cut short: {} bytes left, at least {wanted} wanted", self.rest.len()))
    }
}

/// Writes one message.
#[derive(Debug, Default)]
pub(crate) struct Writer(ByteBuf);

impl Writer {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.into_vec()
    }

    pub(crate) fn nil(&mut self) {
        let Ok(()) = rmp::encode::write_nil(&mut self.0);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        let Ok(()) = rmp::encode::write_bool(&mut self.0, value);
    }

    /// An integer in its shortest form; one beyond 64 bits as a float, since msgpack has no wider one.
    pub(crate) fn int(&mut self, value: i128) {
        if let Ok(unsigned) = u64::try_from(value) {
            sure(rmp::encode::write_uint(&mut self.0, unsigned));
        } else if let Ok(signed) = i64::try_from(value) {
            sure(rmp::encode::write_sint(&mut self.0, signed));
        } else {
            self.float(value as f64);
        }
    }

    pub(crate) fn float(&mut self, value: f64) {
        sure(rmp::encode::write_f64(&mut self.0, value));
    }

    pub(crate) fn str(&mut self, value: &str) {
        sure(rmp::encode::write_str(&mut self.0, value));
    }

    pub(crate) fn bin(&mut self, value: &[u8]) {
        sure(rmp::encode::write_bin(&mut self.0, value));
    }

    /// The head of a list; its items follow.
    pub(crate) fn list(&mut self, length: usize) {
        sure(rmp::encode::write_array_len(&mut self.0, length as u32));
    }

    /// The head of a map; its keys and values follow in turn.
    pub(crate) fn map(&mut self, length: usize) {
        sure(rmp::encode::write_map_len(&mut self.0, length as u32));
    }
}

/// Writing to memory cannot fail.
fn sure<T>(result: Result<T, ValueWriteError<Infallible>>) -> T {
    match result {
        Ok(value) => value,
        Err(ValueWriteError::InvalidMarkerWrite(never) | ValueWriteError::InvalidDataWrite(never)) => {
            match never {}
        }
    }
}
