//! Safetensors files and sharded folders: exact reading, and an error that names the fault for every kind of
//! damage.
#![allow(clippy::unwrap_used)]

mod checkpoint_fixture;

use std::fs;
use std::path::PathBuf;

use checkpoint_fixture::{safetensors, safetensors_of};
use gr00t_host::Weights;
use gr00t_host::checkpoint::{SafetensorsFile, ShardedSafetensors, StoredDtype, TensorSource};
use half::{bf16, f16};
use proptest::prelude::*;
use tempfile::TempDir;

fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.safetensors");
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

fn open_error(bytes: &[u8]) -> String {
    let (_dir, path) = written(bytes);
    SafetensorsFile::open(path).unwrap_err().to_string()
}

#[track_caller]
fn assert_refused(header: &str, data: &[u8], wanted: &str) {
    let error = open_error(&safetensors(header, data));
    assert!(error.contains(wanted), "{error:?} lacks {wanted:?}");
}

fn le_bytes<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

#[test]
fn each_float_type_is_widened_exactly_and_rounded_to_nearest_even() {
    // 1 + 2^-8 lies between two bf16 numbers and goes to the even one, 1 + 3·2^-8 likewise.
    let values = [1.0, -2.5, 1.003_906_3_f32, 1.011_718_8, 65504.0, 6.0e-8, 0.0, -0.0];
    let file = safetensors_of(&[
        ("f32", "F32", &[2, 4], le_bytes(values.map(f32::to_le_bytes))),
        ("f16", "F16", &[8], le_bytes(values.map(|v| f16::from_f32(v).to_le_bytes()))),
        ("bf16", "BF16", &[8], le_bytes(values.map(|v| bf16::from_f32(v).to_le_bytes()))),
    ]);
    let (_dir, path) = written(&file);
    let file = SafetensorsFile::open(path).unwrap();
    assert_eq!(file.names(), ["f32", "f16", "bf16"]);
    let read = |name: &str| {
        let (mut wide, mut narrow) = ([0.0; 8], [bf16::ZERO; 8]);
        file.read_f32(name, 0, &mut wide).unwrap();
        file.read_bf16(name, 0, &mut narrow).unwrap();
        (wide.map(f32::to_bits), narrow.map(bf16::to_bits))
    };
    let narrow = values.map(|v| bf16::from_f32(v).to_bits());
    assert_eq!(narrow[2..4], [0x3f80, 0x3f82]);
    assert_eq!(read("f32"), (values.map(f32::to_bits), narrow));
    let halves = values.map(|v| f16::from_f32(v).to_f32());
    assert_eq!(read("f16"), (halves.map(f32::to_bits), halves.map(|v| bf16::from_f32(v).to_bits())));
    let coarse = values.map(|v| bf16::from_f32(v).to_f32().to_bits());
    assert_eq!(read("bf16"), (coarse, narrow));
}

#[test]
fn ranges_and_rows_read_in_parallel_equal_the_whole() {
    let count = 700_000_usize;
    let value = |i: usize| (i % 1000) as f32;
    let file = safetensors_of(&[
        ("a", "F16", &[1], vec![0, 0]),
        ("b", "F32", &[700, 1000], le_bytes((0..count).map(|i| value(i).to_le_bytes()))),
    ]);
    let (_dir, path) = written(&file);
    let file = SafetensorsFile::open(path).unwrap();
    for (start, len) in [(0, count), (1, count - 1), (262_143, 2), (5, 600_000), (count, 0)] {
        let mut out = vec![-1.0; len];
        file.read_f32("b", start, &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(i, v)| *v == value(start + i)), "{start}+{len}");
        let mut out = vec![bf16::NAN; len];
        file.read_bf16("b", start, &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(i, v)| *v == bf16::from_f32(value(start + i))));
    }
    let error = file.read_f32("b", count, &mut [0.0]).unwrap_err().to_string();
    assert_eq!(error, "tensor b: 1 elements from 700000, but shape [700, 1000] has 700000");
    let root = Weights::new(std::sync::Arc::new(file));
    assert_eq!(root.f32_rows("b", &[700, 1000], 3..5).unwrap()[1999], 999.0);
}

#[test]
fn integers_are_read_as_integers_and_refused_as_weights() {
    let file = safetensors_of(&[
        ("ids", "I64", &[2], le_bytes([7_i64, -1].map(i64::to_le_bytes))),
        ("mask", "U8", &[3], vec![1, 2, 3]),
    ]);
    let (_dir, path) = written(&file);
    let file = SafetensorsFile::open(path).unwrap();
    assert_eq!(file.read_i64("ids").unwrap(), [7, -1]);
    assert_eq!(file.read_u8("mask").unwrap(), [1, 2, 3]);
    assert_eq!(file.info("ids").unwrap().dtype, StoredDtype::I64);
    let error = file.read_f32("ids", 0, &mut [0.0]).unwrap_err().to_string();
    assert_eq!(error, "tensor ids: stored as I64, weights are BF16, F16 or F32");
    assert_eq!(file.read_i64("mask").unwrap_err().to_string(), "tensor mask: stored as U8, wanted I64");
}

#[test]
fn empty_file_sets_and_metadata_are_fine() {
    let (_dir, path) = written(&safetensors(r#"{"__metadata__":{"format":"pt"}}   "#, &[]));
    assert!(SafetensorsFile::open(path).unwrap().names().is_empty());
    let (_dir, path) =
        written(&safetensors(r#"{"e":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}}"#, &[]));
    SafetensorsFile::open(path).unwrap().read_f32("e", 0, &mut []).unwrap();
}

#[test]
fn damaged_headers_are_refused_with_tensor_and_offset() {
    let two = |second: &str| {
        format!(r#"{{"a":{{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}},"b":{{"dtype":{second}}}}}"#)
    };
    let refused = |second: &str, wanted: &str| assert_refused(&two(second), &[0; 8], wanted);
    refused(
        r#""BF16","shape":[3],"data_offsets":[2,8]"#,
        "tensor b at offset 2: overlaps the tensor before it",
    );
    refused(r#""BF16","shape":[1],"data_offsets":[6,8]"#, "tensor b at offset 6: hole of 2 bytes");
    refused(
        r#""BF16","shape":[3],"data_offsets":[4,8]"#,
        "tensor b at offset 4: 4 bytes, but shape [3] of BF16 has 6",
    );
    refused(
        r#""BF16","shape":[4],"data_offsets":[4,12]"#,
        "tensor b at offset 4: ends at 12, but the file is truncated",
    );
    refused(r#""BF16","shape":[1],"data_offsets":[4,6]"#, "2 bytes after the last tensor");
    refused(r#""BF16","shape":[2],"data_offsets":[8,4]"#, "tensor b at offset 8: ends before it begins");
    refused(
        r#""F8_E4M3","shape":[4],"data_offsets":[4,8]"#,
        "tensor b at offset 4: unsupported dtype F8_E4M3",
    );
    refused(r#""Q4","shape":[4],"data_offsets":[4,8]"#, "tensor b: unknown variant `Q4`");
    refused(r#""BF16","shape":[-2],"data_offsets":[4,8]"#, "tensor b: ");
    refused(
        r#""BF16","shape":[4611686018427387904,4],"data_offsets":[4,8]"#,
        "tensor b at offset 4: shape [4611686018427387904, 4] overflows",
    );
}

#[test]
fn a_repeated_name_is_refused() {
    let entry = r#""a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}"#;
    assert_refused(&format!("{{{entry},{entry}}}"), &[0; 4], "tensor a comes twice");
}

#[test]
fn what_is_no_safetensors_file_is_refused() {
    assert!(open_error(&[1, 2, 3]).contains("3 bytes, too short"));
    assert!(open_error(&u64::MAX.to_le_bytes()).contains("header of 18446744073709551615 bytes, at most"));
    assert!(
        open_error(&[100, 0, 0, 0, 0, 0, 0, 0, b'{'])
            .contains("truncated: header of 100 bytes in a file of 9")
    );
    assert!(open_error(b"\x02\0\0\0\0\0\0\0\xff\xfe").contains("header is not UTF-8"));
    assert_refused("[]", &[], "header: ");
    assert_refused("{} {}", &[], "header: ");
    assert_refused(&"[".repeat(100_000), &[], "header: ");
    let dir = TempDir::new().unwrap();
    assert!(SafetensorsFile::open(dir.path()).unwrap_err().to_string().contains("not a file"));
    assert!(SafetensorsFile::open(dir.path().join("no")).unwrap_err().to_string().contains("No such file"));
}

#[test]
fn a_file_cut_after_opening_gives_an_error_that_names_tensor_and_offset() {
    let bytes = safetensors_of(&[("a", "BF16", &[100], vec![0; 200])]);
    let (_dir, path) = written(&bytes);
    let file = SafetensorsFile::open(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 - 1).unwrap();
    let error = file.read_bf16("a", 0, &mut [bf16::ZERO; 100]).unwrap_err().to_string();
    let offset = bytes.len() - 200;
    assert!(error.starts_with(&format!("tensor a: 200 bytes at {offset} of ")), "{error}");
}

/// Two shards, `a` and `b` in the first, `c` in the second.
fn sharded() -> TempDir {
    let dir = TempDir::new().unwrap();
    let one = |v: f32| v.to_le_bytes().to_vec();
    let first = safetensors_of(&[("a", "F32", &[1], one(1.0)), ("b", "F32", &[1], one(2.0))]);
    fs::write(dir.path().join("m-1.safetensors"), first).unwrap();
    fs::write(dir.path().join("m-2.safetensors"), safetensors_of(&[("c", "F32", &[1], one(3.0))])).unwrap();
    write_index(&dir, r#""a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors""#);
    dir
}

fn write_index(dir: &TempDir, map: &str) {
    fs::write(dir.path().join("model.safetensors.index.json"), format!(r#"{{"weight_map":{{{map}}}}}"#))
        .unwrap();
}

fn sharded_error(dir: &TempDir) -> String {
    ShardedSafetensors::open(dir.path()).unwrap_err().to_string()
}

#[test]
fn shards_read_as_one() {
    let dir = sharded();
    let source = ShardedSafetensors::open(dir.path()).unwrap();
    assert_eq!(source.names(), ["a", "b", "c"]);
    let mut out = [0.0];
    source.read_f32("c", 0, &mut out).unwrap();
    assert_eq!(out, [3.0]);
    assert_eq!(source.info("d"), None);
    assert!(source.read_f32("d", 0, &mut out).is_err());
}

#[test]
fn every_problem_of_a_sharded_folder_is_in_one_message() {
    let dir = sharded();
    fs::write(dir.path().join("m-2.safetensors"), b"short").unwrap();
    std::os::unix::fs::symlink("../blobs/abc", dir.path().join("m-4.safetensors")).unwrap();
    let map = r#""a":"m-1.safetensors","x":"m-1.safetensors","c":"m-2.safetensors","d":"m-3.safetensors",
        "e":"m-4.safetensors","f":"../m-1.safetensors","g":"/etc/passwd","h":"m-3.safetensors""#;
    write_index(&dir, map);
    let error = sharded_error(&dir);
    for wanted in [
        "m-1.safetensors lacks what the index puts there: x",
        "m-2.safetensors: 5 bytes, too short",
        "shard m-3.safetensors (for d and 1 more) is missing",
        "shard m-4.safetensors (for e) is a dangling link to ../blobs/abc",
        "shard \"../m-1.safetensors\" (for f) is not a file name inside the folder",
        "shard \"/etc/passwd\" (for g) is not a file name inside the folder",
    ] {
        assert!(error.contains(wanted), "{error:?} lacks {wanted:?}");
    }
}

#[test]
fn a_tensor_in_two_shards_is_refused() {
    let dir = sharded();
    fs::copy(dir.path().join("m-1.safetensors"), dir.path().join("m-2.safetensors")).unwrap();
    write_index(&dir, r#""a":"m-1.safetensors","b":"m-2.safetensors""#);
    assert!(sharded_error(&dir).contains("tensor a is in m-2.safetensors and in "));
}

#[test]
fn a_damaged_index_is_refused() {
    let dir = sharded();
    write_index(&dir, r#""a":"m-1.safetensors","a":"m-2.safetensors""#);
    assert!(sharded_error(&dir).contains("tensor a comes twice"));
    write_index(&dir, "");
    assert!(sharded_error(&dir).contains("names no tensor"));
    fs::write(dir.path().join("model.safetensors.index.json"), "{").unwrap();
    assert!(sharded_error(&dir).contains("index.json: "));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (_dir, path) = written(&bytes);
        let _ = SafetensorsFile::open(path);
    }

    #[test]
    fn mutated_files_are_refused_or_read(
        edits in prop::collection::vec((0..300_usize, any::<u8>()), 0..4),
        cut in 0..300_usize,
    ) {
        let mut bytes = safetensors_of(&[
            ("a.weight", "F32", &[2, 2], vec![1; 16]),
            ("b", "BF16", &[3], vec![2; 6]),
            ("c", "F16", &[], vec![3; 2]),
        ]);
        for (at, byte) in edits {
            if let Some(slot) = bytes.get_mut(at) {
                *slot = byte;
            }
        }
        bytes.truncate(bytes.len() - cut / 10);
        let (_dir, path) = written(&bytes);
        if let Ok(file) = SafetensorsFile::open(path) {
            for name in file.names() {
                let elements = file.info(&name).unwrap().elements();
                prop_assert!(elements <= bytes.len());
                let _ = file.read_f32(&name, 0, &mut vec![0.0; elements]);
            }
        }
    }

    #[test]
    fn odd_entries_are_refused_or_read(
        shape in prop::collection::vec(prop_oneof![0..4_u64, any::<u64>()], 0..4),
        begin in prop_oneof![0..10_u64, any::<u64>()],
        end in prop_oneof![0..10_u64, any::<u64>()],
        dtype in prop_oneof![Just("F32"), Just("BF16"), Just("BOOL"), Just("F4"), Just("C64"), Just("")],
    ) {
        let header = format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}}}"#);
        let (_dir, path) = written(&safetensors(&header, &[0; 8]));
        if let Ok(file) = SafetensorsFile::open(path) {
            prop_assert_eq!(file.info("t").unwrap().bytes(), 8);
        }
    }

    #[test]
    fn arbitrary_indexes_never_panic(text in ".{0,200}", file in ".{0,20}") {
        let dir = sharded();
        fs::write(dir.path().join("model.safetensors.index.json"), &text).unwrap();
        let _ = ShardedSafetensors::open(dir.path());
        let index = serde_json::json!({ "weight_map": { "a": file } });
        fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
        prop_assert!(ShardedSafetensors::open(dir.path()).is_err());
    }
}
