//! The messages of openpi's WebSocket: msgpack in which an array is a map of raw bytes, dtype and shape. Sources:
//! `openpi_client/msgpack_numpy.py` (openpi) and the `msgpack-numpy` package, whose keys differ.
//!
//! ```text
//! openpi          {b"__ndarray__": true, b"data": …, b"dtype": "<f4", b"shape": [2]}
//!                 {b"__npgeneric__": true, b"data": value, b"dtype": "<f4"}
//! msgpack-numpy   {b"nd": true, b"type": "<f4", b"kind": b"", b"shape": [2], b"data": …}
//!                 {b"nd": false, b"type": "<f4", b"data": …}
//! ```
//!
//! Either may come with text in place of bytes as keys. A reply is written in the [`Dialect`] of the request.

use super::array::{Array, Elements};
use super::dtype::Descr;
use super::error::{CodecError, Result};
use super::limits::Limits;
use super::msgpack::{self, Key, Raw, Writer};
use super::value::Value;

/// How arrays are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The names of an array's parts.
    pub names: Names,
    /// Whether these names are bytes rather than text.
    pub bytes_keys: bool,
}

/// The names of an array's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// `__ndarray__`, `dtype`.
    OpenPi,
    /// `nd`, `type`, `kind`.
    MsgpackNumpy,
}

impl Default for Dialect {
    /// openpi's own.
    fn default() -> Self {
        Self { names: Names::OpenPi, bytes_keys: true }
    }
}

/// Reads a message, and tells the dialect of its first array (openpi's if it has none).
///
/// # Errors
/// [`CodecError`] if it is not msgpack, is beyond `limits`, or holds an array whose shape does not fit its bytes or whose
/// dtype is not supported; [`CodecError::Pickle`] for objects.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<(Value, Dialect)> {
    let mut dialect = None;
    let value = value(msgpack::read(bytes, limits)?, &mut dialect)?;
    Ok((value, dialect.unwrap_or_default()))
}

fn value(raw: Raw<'_>, dialect: &mut Option<Dialect>) -> Result<Value> {
    Ok(match raw {
        Raw::Nil => Value::Null,
        Raw::Bool(x) => Value::Bool(x),
        Raw::Int(x) => Value::Int(x),
        Raw::Float(x) => Value::Float(x),
        Raw::Str(x) => Value::text(x),
        Raw::Bin(x) => Value::Bytes(x.to_vec()),
        Raw::List(items) => {
            Value::List(items.into_iter().map(|item| value(item, dialect)).collect::<Result<_>>()?)
        }
        Raw::Map(pairs) => {
            let tag = pairs.iter().find_map(|(key, _)| tag_of(*key));
            let map = Raw::Map(pairs);
            if let Some((tag, bytes_keys)) = tag {
                let names = if tag == Tag::Nd { Names::MsgpackNumpy } else { Names::OpenPi };
                dialect.get_or_insert(Dialect { names, bytes_keys });
                return array(&map, tag).map(Value::Array);
            }
            let Raw::Map(pairs) = map else { return Ok(Value::Null) };
            let pair = |(key, raw): (Key<'_>, Raw<'_>)| Ok((key.text.to_owned(), value(raw, dialect)?));
            Value::Map(pairs.into_iter().map(pair).collect::<Result<_>>()?)
        }
    })
}

/// Which key marks an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Ndarray,
    Generic,
    Nd,
}

fn tag_of(key: Key<'_>) -> Option<(Tag, bool)> {
    let tag = match key.text {
        "__ndarray__" => Tag::Ndarray,
        "__npgeneric__" => Tag::Generic,
        "nd" => Tag::Nd,
        _ => return None,
    };
    Some((tag, key.is_bin))
}

fn array(map: &Raw<'_>, tag: Tag) -> Result<Array> {
    let lacks = |what: &str| CodecError::Array(format!("an array map lacks {what}"));
    if map.get("kind").and_then(Raw::text) == Some("O") {
        return Err(CodecError::Pickle("an array of Python objects".to_owned()));
    }
    let type_key = if tag == Tag::Nd { "type" } else { "dtype" };
    let descr = map.get(type_key).and_then(Raw::text).ok_or_else(|| lacks(type_key))?;
    let descr = Descr::parse(descr)?;
    let data = map.get("data").ok_or_else(|| lacks("data"))?;
    let scalar = tag == Tag::Generic || map.get("nd") == Some(&Raw::Bool(false));
    let shape = match map.get("shape") {
        _ if scalar => Vec::new(),
        Some(shape) => shape.shape().ok_or_else(|| lacks("a shape of lengths"))?,
        None => return Err(lacks("shape")),
    };
    match data {
        Raw::Bin(bytes) => Array::from_bytes(descr, shape, false, bytes),
        // openpi's scalars are plain msgpack values
        Raw::Int(x) if scalar => integer(*x),
        Raw::Float(x) if scalar => Array::new(shape, Elements::F64(vec![*x])),
        Raw::Bool(x) if scalar => Array::new(shape, Elements::Bool(vec![*x])),
        Raw::Str(x) if scalar => Array::new(shape, Elements::Text(vec![(*x).to_owned()])),
        _ => Err(lacks("bytes in data")),
    }
}

fn integer(value: i128) -> Result<Array> {
    let elements = match (i64::try_from(value), u64::try_from(value)) {
        (Ok(signed), _) => Elements::I64(vec![signed]),
        (_, Ok(unsigned)) => Elements::U64(vec![unsigned]),
        _ => return Err(CodecError::Array(format!("{value} has more than 64 bits"))),
    };
    Array::new(Vec::new(), elements)
}

/// Writes a message.
pub fn encode(value: &Value, dialect: Dialect) -> Vec<u8> {
    let mut out = Writer::default();
    write(&mut out, value, dialect);
    out.finish()
}

fn write(out: &mut Writer, value: &Value, dialect: Dialect) {
    match value {
        Value::Null => out.nil(),
        Value::Bool(x) => out.bool(*x),
        Value::Int(x) => out.int(*x),
        Value::Float(x) => out.float(*x),
        Value::Text(x) => out.str(x),
        Value::Bytes(x) => out.bin(x),
        Value::List(items) => {
            out.list(items.len());
            for item in items {
                write(out, item, dialect);
            }
        }
        Value::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                out.str(key);
                write(out, value, dialect);
            }
        }
        Value::Array(array) => write_array(out, array, dialect),
    }
}

fn write_array(out: &mut Writer, array: &Array, dialect: Dialect) {
    let name = |out: &mut Writer, name: &str| {
        if dialect.bytes_keys {
            out.bin(name.as_bytes());
        } else {
            out.str(name);
        }
    };
    let shape = |out: &mut Writer| {
        out.list(array.shape().len());
        for &length in array.shape() {
            out.int(length as i128);
        }
    };
    let descr = array.dtype().descr();
    let data = array.to_bytes();
    match dialect.names {
        Names::OpenPi => {
            out.map(4);
            name(out, "__ndarray__");
            out.bool(true);
            name(out, "data");
            out.bin(&data);
            name(out, "dtype");
            out.str(&descr);
            name(out, "shape");
            shape(out);
        }
        Names::MsgpackNumpy => {
            out.map(5);
            name(out, "nd");
            out.bool(true);
            name(out, "type");
            out.str(&descr);
            name(out, "kind");
            out.bin(b"");
            name(out, "shape");
            shape(out);
            name(out, "data");
            out.bin(&data);
        }
    }
}
