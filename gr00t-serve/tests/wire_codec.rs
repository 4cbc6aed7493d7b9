//! The codecs against bytes that NumPy 1.26.4, msgpack 1.2.4, json-numpy 2.1.1, openpi-client 0.1.2 and msgpack-numpy wrote,
//! and against bytes that nobody should send.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use gr00t_serve::codec::msgpack_numpy::{Dialect, Names};
use gr00t_serve::codec::{
    Array, CodecError, Elements, Limits, Value, decode_act, json_numpy, msg_serializer, msgpack_numpy, npy,
};

fn limits() -> Limits {
    Limits::default()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A version 1.0 file as `numpy.save` writes it: header padded to 128 bytes in all.
fn npy_file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(127, b' ');
    file.push(b'\n');
    file.extend_from_slice(data);
    file
}

fn array(shape: &[usize], elements: Elements) -> Array {
    Array::new(shape.to_vec(), elements).unwrap()
}

fn refusal(file: &[u8]) -> String {
    npy::read(file).unwrap_err().to_string()
}

// ---- npy ----

#[test]
fn npy_reads_and_writes_what_numpy_saves() {
    let zeros = |n: usize| vec![0_u8; n];
    let cases = [
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 7), }",
            zeros(448),
            array(&[16, 7], Elements::F32(vec![0.0; 112])),
        ),
        (
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2, 3), }",
            zeros(12),
            array(&[1, 2, 2, 3], Elements::U8(zeros(12))),
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }",
            unhex("0000000000000000 000000000000f03f 000000000000f0bf"),
            array(&[1, 3], Elements::F64(vec![0.0, 1.0, -1.0])),
        ),
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
            unhex("00004040"),
            array(&[], Elements::F32(vec![3.0])),
        ),
        (
            "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
            unhex("0100000000000000 ffffffffffffffff"),
            array(&[2], Elements::I64(vec![1, -1])),
        ),
        (
            "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }",
            vec![1, 0],
            array(&[2], Elements::Bool(vec![true, false])),
        ),
        (
            "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
            unhex("61000000f1000000 6200000000000000"),
            array(&[2], Elements::Text(vec!["añ".into(), "b".into()])),
        ),
    ];
    for (header, data, wanted) in cases {
        let file = npy_file(header, &data);
        assert_eq!(npy::read(&file).unwrap(), wanted, "{header}");
        assert_eq!(npy::write(&wanted), file, "{header}");
    }
}

#[test]
fn npy_reads_big_endian_half_and_fortran_order() {
    let big = npy_file(
        "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }",
        &unhex("3ff8000000000000 c000000000000000"),
    );
    assert_eq!(npy::read(&big).unwrap(), array(&[2], Elements::F64(vec![1.5, -2.0])));

    let half = npy_file("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", &unhex("003c 00c0"));
    let wanted = [1.0, -2.0].map(half::f16::from_f32).to_vec();
    assert_eq!(npy::read(&half).unwrap(), array(&[2], Elements::F16(wanted)));

    // np.asfortranarray(np.arange(6, dtype='<i4').reshape(2, 3))
    let fortran = npy_file(
        "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }",
        &unhex("00000000 03000000 01000000 04000000 02000000 05000000"),
    );
    assert_eq!(npy::read(&fortran).unwrap(), array(&[2, 3], Elements::I32(vec![0, 1, 2, 3, 4, 5])));

    // the same values as (2, 3, 2), Fortran order: first index fastest
    let cube: Vec<u8> = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11].to_vec();
    let cube = npy_file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", &cube);
    assert_eq!(npy::read(&cube).unwrap(), array(&[2, 3, 2], Elements::U8((0..12).collect())));
}

#[test]
fn npy_reads_versions_two_and_three_and_any_order_of_keys() {
    for major in [2, 3] {
        let header = "{\"shape\":(2L,),'fortran_order':True , 'descr' : '|u1'}\n";
        let mut file = b"\x93NUMPY".to_vec();
        file.extend_from_slice(&[major, 0]);
        file.extend_from_slice(&(header.len() as u32).to_le_bytes());
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(&[7, 9]);
        assert_eq!(npy::read(&file).unwrap(), array(&[2], Elements::U8(vec![7, 9])));
    }
}

#[test]
fn npy_refuses_python_objects_by_name() {
    let file = npy_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04K\x01.");
    assert!(matches!(npy::read(&file), Err(CodecError::Pickle(_))));
    assert!(refusal(&file).contains("\"|O\""), "{}", refusal(&file));
}

#[test]
fn npy_refuses_what_does_not_add_up() {
    let bad = |descr: &str, shape: &str, data: &[u8]| {
        refusal(&npy_file(
            &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"),
            data,
        ))
    };
    assert!(bad("<f4", "(2,)", &[0; 7]).contains("shape [2] of float32 does not fit 7 bytes"));
    assert!(bad("|u1", "(9223372036854775808, 4)", &[]).contains("more elements than memory"));
    assert!(bad("|u1", "(99999999999999999999999,)", &[]).contains("no tuple of lengths"));
    assert!(bad("<U0", "(1000000,)", &[]).contains("texts in an array"));
    assert!(bad("<U99999999", "(1,)", &[]).contains("at most"));
    assert!(bad("<U1", "(1,)", &[0, 0xd8, 0, 0]).contains("0xd800"));
    assert!(bad("<c8", "(1,)", &[0; 8]).contains("not supported"));
    assert!(bad("<V8", "(1,)", &[0; 8]).contains("not supported"));
    assert!(refusal(b"PK\x03\x04").contains("starts with"));
    assert!(refusal(b"\x93NUMPY\x01\x00\xff\xff{").contains("npy header is 65535"));
    assert!(refusal(b"\x93NUMPY\x01\x00\x20\x00{").contains("cut short"));
    assert!(refusal(b"\x93NUMPY\x09\x00\x20\x00{").contains("version 9.0"));
}

// ---- NVIDIA's msgpack ----

#[test]
fn msg_serializer_matches_the_stock_bytes() {
    let cases = [
        ("81a8656e64706f696e74a470696e67", Value::map([("endpoint", Value::text("ping"))])),
        (
            "82a6737461747573a26f6ba76d657373616765b15365727665722069732072756e6e696e67",
            Value::map([("status", Value::text("ok")), ("message", Value::text("Server is running"))]),
        ),
        (
            "81a56572726f72bf556e617574686f72697a65643a20496e76616c69642041504920746f6b656e",
            Value::map([("error", Value::text("Unauthorized: Invalid API token"))]),
        ),
        ("c0", Value::Null),
    ];
    for (hex, value) in cases {
        assert_eq!(msg_serializer::decode(&unhex(hex), limits()).unwrap(), value);
        assert_eq!(msg_serializer::encode(&value), unhex(hex));
    }
}

#[test]
fn msg_serializer_carries_whole_npy_files() {
    let file = npy_file(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }",
        &unhex("0000000000000000 000000000000f03f 000000000000f0bf"),
    );
    let mut message = unhex("82b1");
    message.extend_from_slice(b"__ndarray_class__\xc3\xa6as_npy\xc4\x98");
    message.extend_from_slice(&file);
    assert_eq!(message.len(), 181);
    let wanted = Value::Array(array(&[1, 3], Elements::F64(vec![0.0, 1.0, -1.0])));
    assert_eq!(msg_serializer::decode(&message, limits()).unwrap(), wanted);
    assert_eq!(msg_serializer::encode(&wanted), message);
}

#[test]
fn msgpack_refuses_declared_lengths_without_allocating() {
    for hex in [
        "dd40000000", // a list of 2^30
        "df40000000", // a map of 2^30
        "db40000000", // a text of 1 GiB
        "c640000000", // bytes of 1 GiB
        "dcffff00",   // a list that ends early
        "c7ff01",     // an extension
        "c1",         // reserved
        "81",
        "",
        "8101c0",         // an integer as key
        "82a161c0a161c0", // a key twice
        "c0c0",           // two messages
        "a2ffff",         // no UTF-8
    ] {
        assert!(msg_serializer::decode(&unhex(hex), limits()).is_err(), "{hex}");
    }
}

#[test]
fn msgpack_depth_and_number_of_values_are_bounded() {
    let deep = vec![0x91; 1_000_000];
    assert!(matches!(
        msg_serializer::decode(&deep, limits()),
        Err(CodecError::TooLarge { what: "nesting", .. })
    ));
    let mut many = unhex("dd00200000");
    many.resize(many.len() + 0x20_0000, 0);
    assert!(matches!(
        msg_serializer::decode(&many, limits()),
        Err(CodecError::TooLarge { what: "number of values", .. })
    ));
    let small = Limits { bytes: 4, ..limits() };
    assert!(msg_serializer::decode(&[0xc0; 5], small).is_err());
}

// ---- openpi's msgpack ----

const OPENPI: &str = "82b16f62736572766174696f6e2f737461746584c40b5f5f6e6461727261795f5fc3c40464617461c4080000000000\
    000000c4056474797065a33c6634c40573686170659102a670726f6d7074a26869";
const MSGPACK_NUMPY: &str = "81a17385c4026e64c3c40474797065a33c6634c4046b696e64c400c40573686170659102c40464617461c408000000000000803f";

#[test]
fn openpi_messages_match_the_stock_bytes() {
    let wanted = Value::map([
        ("observation/state", Value::Array(array(&[2], Elements::F32(vec![0.0; 2])))),
        ("prompt", Value::text("hi")),
    ]);
    let (value, dialect) = msgpack_numpy::decode(&unhex(OPENPI), limits()).unwrap();
    assert_eq!((&value, dialect), (&wanted, Dialect::default()));
    assert_eq!(msgpack_numpy::encode(&value, dialect), unhex(OPENPI));
}

#[test]
fn msgpack_numpy_messages_match_the_package_s_bytes() {
    let (value, dialect) = msgpack_numpy::decode(&unhex(MSGPACK_NUMPY), limits()).unwrap();
    assert_eq!(value.get("s"), Some(&Value::Array(array(&[2], Elements::F32(vec![0.0, 1.0])))));
    assert_eq!(dialect, Dialect { names: Names::MsgpackNumpy, bytes_keys: true });
    assert_eq!(msgpack_numpy::encode(&value, dialect), unhex(MSGPACK_NUMPY));
}

#[test]
fn openpi_names_as_text_are_understood_and_answered_alike() {
    let text_keys = Dialect { bytes_keys: false, ..Dialect::default() };
    let value = Value::map([("s", Value::Array(array(&[1], Elements::F32(vec![2.0]))))]);
    let bytes = msgpack_numpy::encode(&value, text_keys);
    assert_eq!(msgpack_numpy::decode(&bytes, limits()).unwrap(), (value, text_keys));
}

#[test]
fn numpy_scalars_are_read_in_both_dialects() {
    // {"x": np.float32(1.5), "y": np.int64(-3)}, openpi; {"s": np.float32(1.5)}, msgpack-numpy
    let openpi = unhex(
        "82a17883c40d5f5f6e7067656e657269635f5fc3c40464617461cb3ff8000000000000c4056474797065a33c6634a17983c40d\
         5f5f6e7067656e657269635f5fc3c40464617461fdc4056474797065a33c6938",
    );
    let (value, _) = msgpack_numpy::decode(&openpi, limits()).unwrap();
    assert_eq!(value.get("x"), Some(&Value::Array(array(&[], Elements::F64(vec![1.5])))));
    assert_eq!(value.get("y"), Some(&Value::Array(array(&[], Elements::I64(vec![-3])))));
    let other = unhex("81a17383c4026e64c2c40474797065a33c6634c40464617461c4040000c03f");
    let (value, _) = msgpack_numpy::decode(&other, limits()).unwrap();
    assert_eq!(value.get("s"), Some(&Value::Array(array(&[], Elements::F32(vec![1.5])))));
}

#[test]
fn openpi_refuses_objects_and_shapes_that_lie() {
    let message = |descr: &str, length: i128| {
        let pairs = [
            ("__ndarray__", Value::Bool(true)),
            ("data", Value::Bytes(vec![0; 8])),
            ("dtype", Value::text(descr)),
            ("shape", Value::List(vec![Value::Int(length)])),
        ];
        msgpack_numpy::decode(&msg_serializer::encode(&Value::map(pairs)), limits())
    };
    assert!(message("<f4", 2).is_ok());
    assert!(matches!(message("|O", 1), Err(CodecError::Pickle(_))));
    for (descr, length) in [("<f4", 3), ("<f4", -2), ("<f4", i128::from(u64::MAX)), ("<c8", 1), ("", 8)] {
        assert!(message(descr, length).is_err(), "{descr} {length}");
    }
}

// ---- JSON ----

#[test]
fn json_numpy_matches_the_stock_text() {
    let text = r#"{"a":{"__numpy__":"AAAAAAAAAAAAAAAAAADwPwAAAAAAAPC/","dtype":"<f8","shape":[1,3]},"u":{"__numpy__":"YQAAAGIAAAA=","dtype":"<U2","shape":[1]},"s":{"__numpy__":"AADAPw==","dtype":"<f4","shape":[]}}"#;
    let wanted = Value::map([
        ("a", Value::Array(array(&[1, 3], Elements::F64(vec![0.0, 1.0, -1.0])))),
        ("u", Value::Array(array(&[1], Elements::Text(vec!["ab".into()])))),
        ("s", Value::Array(array(&[], Elements::F32(vec![1.5])))),
    ]);
    assert_eq!(json_numpy::decode(text.as_bytes(), limits()).unwrap(), wanted);
    assert_eq!(json_numpy::encode(&wanted), text);
}

#[test]
fn json_is_bounded_and_its_errors_are_ours() {
    let deep = "[".repeat(100_000);
    assert!(matches!(
        json_numpy::decode(deep.as_bytes(), limits()),
        Err(CodecError::TooLarge { what: "nesting", .. })
    ));
    let many = format!("[{}0]", "0,".repeat(Limits::DEFAULT_NODES));
    assert!(matches!(
        json_numpy::decode(many.as_bytes(), limits()),
        Err(CodecError::TooLarge { what: "number of values", .. })
    ));
    for bad in [
        "",
        "{",
        "NaN",
        "{} {}",
        r#"{"a":1,"a":2}"#,
        r#"{"__numpy__":"AAAA","dtype":"<f4","shape":[1]}"#,
        r#"{"__numpy__":"A","dtype":"|u1","shape":[1]}"#,
        r#"{"__numpy__":"AAAA","dtype":"|u1","shape":[-3]}"#,
        r#"{"__numpy__":"AAAA","dtype":"|u1"}"#,
        r#"{"__numpy__":1,"dtype":"|u1","shape":[1]}"#,
        r#"{"__numpy__":"AAAAAAAAAAA=","dtype":"|O","shape":[1]}"#,
    ] {
        assert!(json_numpy::decode(bad.as_bytes(), limits()).is_err(), "{bad}");
    }
}

#[test]
fn act_bodies_are_plain_or_encoded() {
    let wanted = Value::map([("state.waist", Value::List(vec![Value::Int(1)]))]);
    let plain = r#"{"observation": {"state.waist": [1]}}"#;
    let encoded = r#"{"encoded": "{\"observation\": {\"state.waist\": [1]}}"}"#;
    for body in [plain, encoded] {
        assert_eq!(decode_act(body.as_bytes(), limits()).unwrap().observation, wanted, "{body}");
    }
    for bad in ["[]", "{}", r#"{"encoded": 1}"#, r#"{"encoded": "{}", "x": 1}"#, r#"{"encoded": "["}"#] {
        assert!(decode_act(bad.as_bytes(), limits()).is_err(), "{bad}");
    }
}
