//! The parts of `/predict`'s body that grow: cameras, state rows, noise. They are bounded while they are parsed, since a number
//! takes more memory than its digits, and before the service's queue bounds anything.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::text::check_key;

/// Most keys of one kind.
const MAX_KEYS: usize = 64;
/// Most frames of a camera and time steps of a state; one is wanted.
const MAX_STEPS: usize = 16;
/// Most values in a row.
const MAX_ROW: usize = 1024;
/// Most rows of noise.
const MAX_NOISE_ROWS: usize = 1024;

/// A list of at most `MOST`.
#[derive(Debug)]
pub(super) struct Capped<T, const MOST: usize>(pub(super) Vec<T>);

/// `[horizon][action_dim]`.
pub(super) type NoiseRows = Capped<Capped<f32, MAX_ROW>, MAX_NOISE_ROWS>;

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Capped<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MOST}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut items = Vec::new();
                while items.len() < MOST {
                    let Some(item) = seq.next_element()? else { return Ok(items) };
                    items.push(item);
                }
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(items),
                    Some(_) => Err(A::Error::custom(format!("a list of more than {MOST}"))),
                }
            }
        }
        deserializer.deserialize_seq(List::<T, MOST>(PhantomData)).map(Self)
    }
}

/// What a map's values are, for messages.
pub(super) trait Field {
    const NAME: &'static str;
    const WANTED: &'static str;
}

/// A map of few keys, each once.
#[derive(Debug)]
pub(super) struct Fields<T>(pub(super) BTreeMap<String, T>);

impl<'de, T: Field + Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);

        impl<'de, T: Field + Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = BTreeMap<String, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WANTED)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let refusal = |what: &dyn fmt::Display| A::Error::custom(format!("{} {what}", T::NAME));
                    check_key(&key).map_err(|what| refusal(&what))?;
                    if fields.len() == MAX_KEYS {
                        return Err(refusal(&format!("has more than {MAX_KEYS} keys")));
                    }
                    let value = map.next_value().map_err(|error| refusal(&format!("{key}: {error}")))?;
                    if fields.contains_key(&key) {
                        return Err(refusal(&format!("{key}: comes twice")));
                    }
                    fields.insert(key, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Map(PhantomData)).map(Self)
    }
}

/// Base64 of a picture, alone or in a list.
#[derive(Debug)]
pub(super) enum Image {
    One(String),
    Frames(Vec<String>),
}

impl Field for Image {
    const NAME: &'static str = "image";
    const WANTED: &'static str = "images as an object of cameras";
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Picture;

        impl<'de> Visitor<'de> for Picture {
            type Value = Image;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 of a picture, or a list of one")
            }

            fn visit_str<E>(self, text: &str) -> Result<Image, E> {
                Ok(Image::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Image, A::Error> {
                let list = serde::de::value::SeqAccessDeserializer::new(seq);
                Capped::<String, MAX_STEPS>::deserialize(list).map(|frames| Image::Frames(frames.0))
            }
        }
        deserializer.deserialize_any(Picture)
    }
}

/// The values of one state key.
#[derive(Debug)]
pub(super) enum Row {
    Flat(Vec<f64>),
    Nested(Vec<Vec<f64>>),
}

impl Field for Row {
    const NAME: &'static str = "state";
    const WANTED: &'static str = "state as an object of keys";
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Capped(items) = Capped::<Item, MAX_ROW>::deserialize(deserializer)?;
        let (mut flat, mut nested) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Number(value) => flat.push(value),
                Item::Row(_) if nested.len() == MAX_STEPS => {
                    return Err(D::Error::custom(format!("more than {MAX_STEPS} time steps, wanted 1")));
                }
                Item::Row(Capped(row)) => nested.push(row),
            }
        }
        match (flat.is_empty(), nested.is_empty()) {
            (false, false) => Err(D::Error::custom("numbers beside lists, wanted [[numbers]]")),
            (true, false) => Ok(Self::Nested(nested)),
            (_, true) => Ok(Self::Flat(flat)),
        }
    }
}

enum Item {
    Number(f64),
    Row(Capped<f64, MAX_ROW>),
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers as in [[0.1, 0.2]]")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Item, E> {
                Ok(Item::Number(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Item, E> {
                Ok(Item::Number(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Item, E> {
                Ok(Item::Number(value as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Item, A::Error> {
                let list = serde::de::value::SeqAccessDeserializer::new(seq);
                Capped::deserialize(list).map(Item::Row)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
