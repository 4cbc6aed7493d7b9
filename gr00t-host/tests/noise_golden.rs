//! The noise of a seed against torch: `golden/torch_randn.json`, and fingerprints of more sizes and seeds.

use gr00t_host::noise::torch_randn;
use serde_json::Value;

#[test]
fn seeded_noise_equals_the_golden_in_every_bit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/torch_randn.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: {path} is absent");
        return;
    };
    let golden: Value = serde_json::from_str(&text).expect("golden is JSON");
    for case in golden["cases"].as_array().expect("cases") {
        let seed = case["seed"].as_u64().expect("seed");
        for key in ["f32_16x32", "f32_2x7"] {
            let want: Vec<f32> = serde_json::from_value(case[key].clone()).expect("numbers");
            assert_eq!(bits(&torch_randn(seed, want.len())), bits(&want), "seed {seed} {key}");
        }
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// FNV-1a over the little-endian bytes.
fn fingerprint(values: &[f32]) -> u64 {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn sizes_around_a_block_and_seeds_beyond_32_bits_equal_torchs() {
    for (seed, elements, want) in TORCH {
        assert_eq!(fingerprint(&torch_randn(seed, elements)), want, "seed {seed}, {elements} elements");
    }
}

#[test]
fn four_million_values_equal_torchs() {
    // torch 2.5.1: torch.randn(1 << 22, generator=torch.Generator().manual_seed(99))
    assert_eq!(fingerprint(&torch_randn(99, 1 << 22)), 0x5387_3e03_15df_4449);
}

/// Seed, number of elements, fingerprint of what torch 2.5.1 draws on an x86 CPU with AVX2.
#[rustfmt::skip]
const TORCH: [(u64, usize, u64); 72] = [
    (0, 1, 0x1877733c12d64cbc),
    (0, 2, 0xa74f8872418aedec),
    (0, 3, 0x17825698d6de5189),
    (0, 15, 0x52b8f3bcc098f4b9),
    (0, 16, 0x28d49f8f92bf21d6),
    (0, 17, 0x9151e09be6bcf07a),
    (0, 31, 0x3e39671abab4a234),
    (0, 32, 0x96cdff5c281baa04),
    (0, 33, 0xf2eb928ce9653fe6),
    (0, 100, 0x6b680134d3d69e1b),
    (0, 512, 0x9fd79834ae91cb77),
    (0, 1000, 0x31ae67821ca5077e),
    (42, 1, 0x339a81d29fc978d3),
    (42, 2, 0x999ce133fe752ca1),
    (42, 3, 0x37ecaea295c8b6de),
    (42, 15, 0x4c7fdcb26081ae6b),
    (42, 16, 0x080ffa5fbeb15154),
    (42, 17, 0x91ae8bd790a50356),
    (42, 31, 0xbcc1254f5a30e3c3),
    (42, 32, 0x286932daaf3a819a),
    (42, 33, 0x00a911b61ea4ac05),
    (42, 100, 0x7ea02704af7a98a3),
    (42, 512, 0x4b85b803a2a5a244),
    (42, 1000, 0x790c9ebfd52592da),
    (7, 1, 0x783db6eff263643a),
    (7, 2, 0x3d8d02f06057a928),
    (7, 3, 0x3a9c1f914a24a096),
    (7, 15, 0xae1db7ca1b59542b),
    (7, 16, 0x5d310a33b33c13d8),
    (7, 17, 0xb8b2b898064e9a44),
    (7, 31, 0x1a01e30f021a8183),
    (7, 32, 0xd2530cffd6068f2d),
    (7, 33, 0x663103a265b5e470),
    (7, 100, 0x3c97a2b7827d7b09),
    (7, 512, 0x6db4d062a943707d),
    (7, 1000, 0xdee17a057de55fc7),
    (4294967303, 1, 0x783db6eff263643a),
    (4294967303, 2, 0x3d8d02f06057a928),
    (4294967303, 3, 0x3a9c1f914a24a096),
    (4294967303, 15, 0xae1db7ca1b59542b),
    (4294967303, 16, 0x5d310a33b33c13d8),
    (4294967303, 17, 0xb8b2b898064e9a44),
    (4294967303, 31, 0x1a01e30f021a8183),
    (4294967303, 32, 0xd2530cffd6068f2d),
    (4294967303, 33, 0x663103a265b5e470),
    (4294967303, 100, 0x3c97a2b7827d7b09),
    (4294967303, 512, 0x6db4d062a943707d),
    (4294967303, 1000, 0xdee17a057de55fc7),
    (9223372036978232597, 1, 0xf313479bc8f445bc),
    (9223372036978232597, 2, 0xa083107cad3902be),
    (9223372036978232597, 3, 0x4cb836a01c59273a),
    (9223372036978232597, 15, 0xf3320750ccc2bf33),
    (9223372036978232597, 16, 0xc6984efc5d839c08),
    (9223372036978232597, 17, 0x4aa5f270fb418bc5),
    (9223372036978232597, 31, 0xcb622b4b46aca963),
    (9223372036978232597, 32, 0x34b92dcae394ee3e),
    (9223372036978232597, 33, 0x64eaac0fc3e3483c),
    (9223372036978232597, 100, 0x27c17f977fd341f5),
    (9223372036978232597, 512, 0xb3f081e552c68eaf),
    (9223372036978232597, 1000, 0xc68a21bf7f421fff),
    (18446744073709551615, 1, 0x9b4a0a0b8016c1cd),
    (18446744073709551615, 2, 0x61570eecf39ed9dd),
    (18446744073709551615, 3, 0xf309dd20b5c87e0a),
    (18446744073709551615, 15, 0xc620850571f7f360),
    (18446744073709551615, 16, 0x1808b97ae710776a),
    (18446744073709551615, 17, 0xc48ad8ea8d0160dc),
    (18446744073709551615, 31, 0x141242328393e1db),
    (18446744073709551615, 32, 0xe487eb52efac8e88),
    (18446744073709551615, 33, 0xf8cf304db2d52817),
    (18446744073709551615, 100, 0x7fa61a90f48724aa),
    (18446744073709551615, 512, 0x9a5545f6ba5599e3),
    (18446744073709551615, 1000, 0x09d8def090ce0cb8),
];
