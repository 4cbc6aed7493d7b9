//! JSON in which an array is `{"__numpy__": base64, "dtype": …, "shape": […]}`. Source: the `json-numpy` package, which
//! NVIDIA's HTTP server uses (`gr00t/eval/http_server.py`).

use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserializer, Serialize, Serializer};

use super::array::Array;
use super::dtype::Descr;
use super::error::{CodecError, Result};
use super::limits::{Budget, Limits};
use super::value::Value;
use crate::text::check_key;

const ARRAY_TAG: &str = "__numpy__";

/// Reads a message.
///
/// # Errors
/// [`CodecError`] if it is not JSON, is beyond `limits`, or holds an array whose base64, dtype and shape do not fit each
/// other.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Value> {
    limits.check_bytes("JSON message", bytes.len())?;
    let state = RefCell::new(State { budget: Budget::new(limits), failure: None });
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = Seed { state: &state, depth: 0 }.deserialize(&mut json).and_then(|v| json.end().map(|()| v));
    parsed.map_err(|e| state.into_inner().failure.unwrap_or_else(|| CodecError::Json(e.to_string())))
}

/// The limits, and the error that serde has no type for.
struct State {
    budget: Budget,
    failure: Option<CodecError>,
}

#[derive(Clone, Copy)]
struct Seed<'s> {
    state: &'s RefCell<State>,
    depth: usize,
}

impl<'s> Seed<'s> {
    /// Keeps our error and gives serde one to stop with.
    fn keep<T, E: serde::de::Error>(self, result: Result<T>) -> Result<T, E> {
        result.map_err(|failure| {
            let message = E::custom(&failure);
            self.state.borrow_mut().failure = Some(failure);
            message
        })
    }

    fn take<E: serde::de::Error>(self) -> Result<(), E> {
        let taken = self.state.borrow_mut().budget.take(1);
        self.keep(taken)
    }

    fn enter<E: serde::de::Error>(self) -> Result<Seed<'s>, E> {
        let entered = self.state.borrow().budget.enter(self.depth);
        self.keep(entered)?;
        Ok(Seed { state: self.state, depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::text(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inside = self.enter()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inside = self.enter()?;
        let mut pairs: Vec<(String, Value)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            self.take()?;
            check_key(&key).map_err(A::Error::custom)?;
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("key {key:?} comes twice")));
            }
            pairs.push((key, map.next_value_seed(inside)?));
        }
        let map = Value::Map(pairs);
        if map.get(ARRAY_TAG).is_none() {
            return Ok(map);
        }
        self.keep(array(&map)).map(Value::Array)
    }
}

fn array(map: &Value) -> Result<Array> {
    let lacks = |what: &str| CodecError::Array(format!("a {ARRAY_TAG} object lacks {what}"));
    let data = map.get(ARRAY_TAG).and_then(Value::as_text).ok_or_else(|| lacks("base64 text"))?;
    let descr = map.get("dtype").and_then(Value::as_text).ok_or_else(|| lacks("dtype"))?;
    let descr = Descr::parse(descr)?;
    let Some(Value::List(shape)) = map.get("shape") else { return Err(lacks("shape")) };
    let length = |item: &Value| match item {
        Value::Int(n) => usize::try_from(*n).ok(),
        _ => None,
    };
    let shape =
        shape.iter().map(length).collect::<Option<Vec<_>>>().ok_or_else(|| lacks("a shape of lengths"))?;
    let bytes = STANDARD.decode(data).map_err(|e| CodecError::Array(format!("{ARRAY_TAG}: {e}")))?;
    Array::from_bytes(descr, shape, false, &bytes)
}

/// Writes a message, without spaces. Numbers that are not finite become null: JSON has no word for them.
pub fn encode(value: &Value) -> String {
    // keys are text and nothing else can fail
    serde_json::to_string(value).unwrap_or_default()
}

impl Serialize for Value {
    /// As `json-numpy` writes it; bytes as base64.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(x) => serializer.serialize_bool(*x),
            Self::Int(x) => match (i64::try_from(*x), u64::try_from(*x)) {
                (Ok(x), _) => serializer.serialize_i64(x),
                (_, Ok(x)) => serializer.serialize_u64(x),
                _ => serializer.serialize_f64(*x as f64),
            },
            Self::Float(x) => serializer.serialize_f64(*x),
            Self::Text(x) => serializer.serialize_str(x),
            Self::Bytes(x) => serializer.serialize_str(&STANDARD.encode(x)),
            Self::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| seq.serialize_element(item))?;
                seq.end()
            }
            Self::Map(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                pairs.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
            Self::Array(array) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry(ARRAY_TAG, &STANDARD.encode(array.to_bytes()))?;
                map.serialize_entry("dtype", &array.dtype().descr())?;
                map.serialize_entry("shape", array.shape())?;
                map.end()
            }
        }
    }
}
