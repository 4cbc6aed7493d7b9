//! Tests of `block_float`, most of them against tt-metal's own packer (`golden/bfp_vectors.json`).

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/bfp_vectors.json");

fn bytes_of(case: &Value, path: &str) -> Vec<u8> {
    let hex = case.pointer(path).and_then(Value::as_str).unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn tiles_equal_those_of_tt_metal() {
    let Ok(text) = std::fs::read_to_string(VECTORS) else {
        println!("skipped: {VECTORS} is absent");
        return;
    };
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 11);
    for case in cases {
        let shape = [&case["shape"][0], &case["shape"][1]].map(|v| v.as_u64().unwrap() as usize);
        let input = floats(&bytes_of(case, "/input_f32_le_hex"));
        for format in [BlockFormat::Bfp8B, BlockFormat::Bfp4B] {
            let name = format!("{} {}", case["name"], format.name());
            let packed = pack(format, &input, shape[0], shape[1]).unwrap();
            assert_eq!(packed, bytes_of(case, &format!("/{}/bytes_hex", format.name())), "{name}");
            let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let back = unpack(format, &packed, shape[0], shape[1]).unwrap();
            let wanted = floats(&bytes_of(case, &format!("/{}/roundtrip_f32_le_hex", format.name())));
            assert_eq!(bits(&back), bits(&wanted), "{name}");
        }
    }
}

#[test]
fn one_outlier_takes_the_precision_of_its_group() {
    let mut group = [1.0; GROUP];
    group[5] = 1000.0;
    let (exponent, elements) = quantize_group(BlockFormat::Bfp8B, &group);
    assert_eq!(BlockFormat::Bfp8B.value(exponent, elements[5]), 1000.0);
    assert_eq!(BlockFormat::Bfp8B.value(exponent, elements[0]), 0.0);
    group[5] = 100.0;
    let (exponent, elements) = quantize_group(BlockFormat::Bfp8B, &group);
    assert_eq!(BlockFormat::Bfp8B.value(exponent, elements[0]), 1.0);
}

#[test]
fn wrong_lengths_are_errors() {
    assert!(pack(BlockFormat::Bfp8B, &[0.0; 5], 2, 3).is_err());
    assert!(unpack(BlockFormat::Bfp8B, &[0; 1087], 32, 32).is_err());
    assert!(unpack(BlockFormat::Bfp4B, &[0; 576], usize::MAX, usize::MAX).is_err());
}

proptest! {
    /// Values are within half a step of the group's exponent (a whole one where they saturate), and packing what was
    /// unpacked changes nothing.
    #[test]
    fn packing_is_near_and_idempotent(
        rows in 1usize..40,
        columns in 1usize..40,
        seed in proptest::collection::vec(-1e4f32..1e4, 1600),
    ) {
        let values = &seed[..rows * columns];
        for format in [BlockFormat::Bfp8B, BlockFormat::Bfp4B] {
            let packed = pack(format, values, rows, columns).unwrap();
            let back = unpack(format, &packed, rows, columns).unwrap();
            for (row, (v, b)) in values.chunks(columns).zip(back.chunks(columns)).enumerate() {
                for (v, b) in v.chunks(GROUP).zip(b.chunks(GROUP)) {
                    let largest = v.iter().fold(0f32, |m, v| m.max(v.abs()));
                    let step = 2f32.powi(largest.log2().floor() as i32 + 1 - format.magnitude_bits() as i32);
                    for (v, b) in v.iter().zip(b) {
                        prop_assert!((v - b).abs() <= step, "row {row}: {v} became {b}, step {step}");
                    }
                }
            }
            prop_assert_eq!(pack(format, &back, rows, columns).unwrap(), packed);
        }
    }
}
