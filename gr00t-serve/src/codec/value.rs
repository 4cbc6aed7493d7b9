//! What every codec decodes to and encodes from.

use super::array::Array;

/// A message, whatever protocol it came by.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Python's None.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of up to 64 bits, either sign.
    Int(i128),
    /// A float.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes that are not an array.
    Bytes(Vec<u8>),
    /// A list or tuple.
    List(Vec<Value>),
    /// A dict with text keys, each once, in the order of the message.
    Map(Vec<(String, Value)>),
    /// A NumPy array or scalar.
    Array(Array),
}

impl Value {
    /// A map from pairs.
    pub fn map<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of value this is, for messages.
    pub fn kind(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(_) => "a boolean".to_owned(),
            Self::Int(_) => "an integer".to_owned(),
            Self::Float(_) => "a float".to_owned(),
            Self::Text(_) => "text".to_owned(),
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Map(pairs) => format!("a map of {}", pairs.len()),
            Self::Array(array) => format!("{} {:?}", array.dtype(), array.shape()),
        }
    }
}
