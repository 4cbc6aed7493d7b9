//! Codecs on random input: what is written is read back, and nothing that is read panics.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use bytes::{Bytes, BytesMut};
use gr00t_serve::codec::msgpack_numpy::{Dialect, Names};
use gr00t_serve::codec::{
    Array, Elements, Limits, RobotKeys, Value, json_numpy, msg_serializer, msgpack_numpy, npy, observations,
};
use gr00t_serve::zmq::{Decoder, Event};
use proptest::collection::vec;
use proptest::prelude::*;

fn shape() -> impl Strategy<Value = Vec<usize>> {
    vec(0_usize..4, 0..4)
}

fn array() -> impl Strategy<Value = Array> {
    (shape(), 0_u8..13, any::<u64>()).prop_map(|(shape, dtype, seed)| {
        let count: usize = shape.iter().product();
        let draw = |i: usize| seed.wrapping_mul(i as u64 + 1).rotate_left(17);
        macro_rules! numbers {
            ($variant:ident, $t:ty) => {
                Elements::$variant((0..count).map(|i| draw(i) as $t).collect())
            };
        }
        let elements = match dtype {
            0 => Elements::Bool((0..count).map(|i| draw(i) & 1 == 1).collect()),
            1 => numbers!(U8, u8),
            2 => numbers!(U16, u16),
            3 => numbers!(U32, u32),
            4 => numbers!(U64, u64),
            5 => numbers!(I8, i8),
            6 => numbers!(I16, i16),
            7 => numbers!(I32, i32),
            8 => numbers!(I64, i64),
            9 => Elements::F16((0..count).map(|i| half::f16::from_f32(draw(i) as u16 as f32)).collect()),
            10 => numbers!(F32, f32),
            11 => numbers!(F64, f64),
            _ => Elements::Text((0..count).map(|i| format!("{:x}é", draw(i) as u16)).collect()),
        };
        Array::new(shape, elements).unwrap()
    })
}

/// Values without arrays inside plain maps' reserved names.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|x| Value::Int(x.into())),
        any::<u64>().prop_map(|x| Value::Int(x.into())),
        (-1e300..1e300).prop_map(Value::Float),
        ".{0,8}".prop_map(Value::Text),
        array().prop_map(Value::Array),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::List),
            proptest::collection::btree_map("[a-c.]{1,3}", inner, 0..4).prop_map(Value::map),
        ]
    })
}

/// Bytes that start like something.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let heads = prop_oneof![
        Just(Vec::new()),
        Just(b"\x93NUMPY\x01\x00\x40\x00{'descr': '".to_vec()),
        Just(b"\x82\xb1__ndarray_class__\xc3\xa6as_npy\xc4".to_vec()),
        Just(b"\x84\xc4\x0b__ndarray__\xc3\xc4\x04data\xc4".to_vec()),
        Just(br#"{"__numpy__":"AAAA","dtype":""#.to_vec()),
    ];
    (heads, vec(any::<u8>(), 0..200)).prop_map(|(mut head, tail)| {
        head.extend(tail);
        head
    })
}

fn robot() -> RobotKeys {
    RobotKeys {
        cameras: vec!["front".into(), "wrist".into()],
        state: vec![("arm".into(), 5), ("gripper".into(), 1)],
    }
}

proptest! {
    #[test]
    fn npy_reads_what_it_writes(array in array()) {
        prop_assert_eq!(npy::read(&npy::write(&array)).unwrap(), array);
    }

    #[test]
    fn msg_serializer_reads_what_it_writes(value in value()) {
        let bytes = msg_serializer::encode(&value);
        prop_assert_eq!(msg_serializer::decode(&bytes, Limits::default()).unwrap(), value);
    }

    #[test]
    fn msgpack_numpy_reads_what_it_writes(value in value(), openpi: bool, bytes_keys: bool) {
        let names = if openpi { Names::OpenPi } else { Names::MsgpackNumpy };
        let bytes = msgpack_numpy::encode(&value, Dialect { names, bytes_keys });
        prop_assert_eq!(msgpack_numpy::decode(&bytes, Limits::default()).unwrap().0, value);
    }

    #[test]
    fn json_numpy_reads_what_it_writes(value in value()) {
        let text = json_numpy::encode(&value);
        prop_assert_eq!(json_numpy::decode(text.as_bytes(), Limits::default()).unwrap(), value);
    }

    #[test]
    fn no_bytes_panic(bytes in bytes()) {
        let limits = Limits::default();
        let _ = npy::read(&bytes);
        let _ = json_numpy::decode(&bytes, limits);
        for message in [msg_serializer::decode(&bytes, limits), msgpack_numpy::decode(&bytes, limits).map(|m| m.0)] {
            let _ = message.and_then(|m| observations(m, &robot()));
        }
    }

    #[test]
    fn a_cut_or_changed_message_never_panics(value in value(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = msg_serializer::encode(&value);
        let at = at.index(bytes.len());
        prop_assert!(msg_serializer::decode(&bytes[..at], Limits::default()).is_err());
        bytes[at] = byte;
        let _ = msg_serializer::decode(&bytes, Limits::default());
        let _ = msgpack_numpy::decode(&bytes, Limits::default());
    }

    #[test]
    fn no_zmtp_stream_panics_or_is_kept_beyond_the_limit(
        pieces in vec(prop_oneof![vec(any::<u8>(), 0..40), vec(0_u8..5, 0..40)], 0..12),
    ) {
        let mut decoder = Decoder::new(64);
        let mut buffer = BytesMut::new();
        'stream: for piece in pieces {
            buffer.extend_from_slice(&piece);
            loop {
                match decoder.next(&mut buffer) {
                    Ok(Some(Event::Message(frames))) => {
                        prop_assert!(frames.iter().map(Bytes::len).sum::<usize>() <= 64);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }

    #[test]
    fn no_observation_panics(
        fields in vec(("(video\\.front|wrist|state\\.arm|arm|state|video|annotation\\.x|prompt|gr00t_tt\\.seed|x)", value()), 0..6)
    ) {
        let _ = observations(Value::map(fields), &robot());
    }
}
