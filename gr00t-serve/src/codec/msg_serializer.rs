//! The messages of NVIDIA's ZeroMQ server: msgpack in which an array is a map with a whole `.npy` file. Source:
//! `MsgSerializer` in Isaac-GR00T's `gr00t/eval/service.py` (N1.5) and `gr00t/policy/server_client.py` (N1.6, N1.7).

use super::error::{CodecError, Result};
use super::limits::Limits;
use super::msgpack::{self, Raw, Writer};
use super::npy;
use super::value::Value;

const ARRAY_TAG: &str = "__ndarray_class__";
const ARRAY_FILE: &str = "as_npy";

/// Reads a message.
///
/// # Errors
/// [`CodecError`] if it is not msgpack, is beyond `limits`, or holds an array that [`npy::read`] refuses.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Value> {
    value(msgpack::read(bytes, limits)?)
}

fn value(raw: Raw<'_>) -> Result<Value> {
    Ok(match raw {
        Raw::Nil => Value::Null,
        Raw::Bool(x) => Value::Bool(x),
        Raw::Int(x) => Value::Int(x),
        Raw::Float(x) => Value::Float(x),
        Raw::Str(x) => Value::text(x),
        Raw::Bin(x) => Value::Bytes(x.to_vec()),
        Raw::List(items) => Value::List(items.into_iter().map(value).collect::<Result<_>>()?),
        Raw::Map(pairs) if pairs.iter().any(|(key, _)| key.text == ARRAY_TAG) => {
            match pairs.iter().find(|(key, _)| key.text == ARRAY_FILE) {
                Some((_, Raw::Bin(file))) => Value::Array(npy::read(file)?),
                _ => return Err(CodecError::Array(format!("{ARRAY_TAG} without bytes in {ARRAY_FILE}"))),
            }
        }
        Raw::Map(pairs) => Value::Map(
            pairs.into_iter().map(|(k, v)| Ok((k.text.to_owned(), value(v)?))).collect::<Result<_>>()?,
        ),
    })
}

/// Writes a message.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    write(&mut out, value);
    out.finish()
}

fn write(out: &mut Writer, value: &Value) {
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
                write(out, item);
            }
        }
        Value::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                out.str(key);
                write(out, value);
            }
        }
        Value::Array(array) => {
            out.map(2);
            out.str(ARRAY_TAG);
            out.bool(true);
            out.str(ARRAY_FILE);
            out.bin(&npy::write(array));
        }
    }
}
