//! Procedural weights against the published vectors of their definition (seed 15, GR00T N1.5-3B), whole-tensor
//! hashes, and the seed-1 checkpoint of the tiny model.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gr00t_host::checkpoint::procedural::{fnv1a64, gaussian_array, id_array, uniform_array};
use gr00t_host::checkpoint::{Procedural, SafetensorsFile, TensorSource};
use gr00t_host::{ModelConfig, Weights};
use half::bf16;

/// Name, base, scale, first eight elements, last element (bf16 bits).
const VECTORS: &[(&str, u64, f32, [u16; 8], u16)] = &[
    (
        "action_head.vlln.weight",
        0x7e86784704335b16,
        0.1,
        [0x3f73, 0x3f78, 0x3f85, 0x3f6e, 0x3f7a, 0x3f85, 0x3f7f, 0x3f6d],
        0x3f7c,
    ),
    (
        "action_head.vlln.bias",
        0xdbba54759cf795c1,
        0.1,
        [0x3c8f, 0x3d6e, 0xbdc0, 0x3cdb, 0xbd99, 0xbca4, 0x3da7, 0xbbdf],
        0xbc01,
    ),
    (
        "backbone.eagle_model.mlp1.0.weight",
        0xddcbcf92d96a3969,
        0.05103104,
        [0xbca6, 0xbc6e, 0x3b54, 0xbd02, 0xbbdc, 0x3cd0, 0xbd0c, 0xbcda],
        0xbd41,
    ),
    (
        "backbone.eagle_model.mlp1.0.bias",
        0xa98bf7c1519e2bbb,
        0.1,
        [0xbd14, 0x3be0, 0x3c5b, 0xbd04, 0x3cfb, 0x3d95, 0xbd9e, 0xbc5e],
        0x3d94,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.embeddings.patch_embedding.weight",
        0xfa88e1cf1a9a86f3,
        0.071428575,
        [0xbd27, 0x3d6a, 0xbcf7, 0xbd42, 0x3ca2, 0xbc5b, 0xbcfc, 0xbd8e],
        0xbd42,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.embeddings.position_embedding.weight",
        0x45a9d931bcb23100,
        0.5,
        [0x3e40, 0x3e4f, 0xbe04, 0xbec1, 0xbee6, 0xbecd, 0xbd2f, 0x3ef5],
        0xbea5,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.encoder.layers.26.mlp.fc2.weight",
        0x4ff523500a9af917,
        0.02640125,
        [0xbc72, 0x3b85, 0xbcc0, 0x3baa, 0xbc9c, 0xbbbc, 0xbc08, 0xbc11],
        0xbcc8,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.post_layernorm.weight",
        0xf2b8d6cc4eccf4fb,
        0.1,
        [0x3f88, 0x3f6b, 0x3f80, 0x3f6d, 0x3f87, 0x3f82, 0x3f8a, 0x3f74],
        0x3f82,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.head.probe",
        0x24ed5c2343994b8a,
        0.5,
        [0x3e4e, 0xbea0, 0xbe44, 0xbd81, 0x3e76, 0xbebe, 0x3db1, 0xbefa],
        0xbe49,
    ),
    (
        "backbone.eagle_model.vision_model.vision_model.head.attention.in_proj_weight",
        0xbc297757484bd8c6,
        0.05103104,
        [0xbd06, 0xbb31, 0xbc6c, 0x3d49, 0x3d4b, 0x3cbb, 0x3d50, 0x3d32],
        0x3c53,
    ),
    (
        "backbone.eagle_model.language_model.model.embed_tokens.weight",
        0x5ef750e1866c766b,
        0.5,
        [0x3ecb, 0x3eee, 0x3eea, 0xbec4, 0xbef6, 0xbd12, 0xbebe, 0x3e85],
        0x3e83,
    ),
    (
        "backbone.eagle_model.language_model.model.layers.0.self_attn.q_norm.weight",
        0x0b95f306e742fb22,
        0.1,
        [0x3f85, 0x3f6c, 0x3f68, 0x3f76, 0x3f83, 0x3f67, 0x3f85, 0x3f85],
        0x3f7f,
    ),
    (
        "backbone.eagle_model.language_model.model.layers.11.mlp.down_proj.weight",
        0xa631e09e65ffc33a,
        0.022097087,
        [0x3be7, 0x3a94, 0xbcab, 0xbc99, 0x3c29, 0xbc8a, 0x3c0e, 0xbc57],
        0xbc5e,
    ),
    (
        "backbone.eagle_model.language_model.model.norm.weight",
        0x13b66587a22c878c,
        0.1,
        [0x3f85, 0x3f8a, 0x3f71, 0x3f8a, 0x3f85, 0x3f8c, 0x3f7f, 0x3f88],
        0x3f7b,
    ),
    (
        "action_head.state_encoder.layer1.W",
        0xf6bb25b94b6995bf,
        0.21650635,
        [0xbe1d, 0x3e14, 0xbe58, 0xbd82, 0x3daf, 0xbe3d, 0xbe5d, 0x3e57],
        0xbcbe,
    ),
    (
        "action_head.state_encoder.layer1.b",
        0xbf7af5624de18149,
        0.1,
        [0x3ceb, 0x3bf4, 0x3d7e, 0xbd5d, 0xbc0f, 0x3d95, 0xbd92, 0x3db0],
        0x3d29,
    ),
    (
        "action_head.action_encoder.W2.W",
        0xea8b65d62e2f23f5,
        0.03125,
        [0x3cc6, 0xbc9b, 0xbce4, 0x3c88, 0x3bbd, 0x3c3a, 0x3be3, 0xbc17],
        0x3cb2,
    ),
    (
        "action_head.action_decoder.layer2.W",
        0x1adda0ab914cd5dc,
        0.054126587,
        [0xbd51, 0xbcd4, 0x3d0c, 0xbd1f, 0xbcc4, 0xbd58, 0x3d43, 0xbc9a],
        0xbcf4,
    ),
    (
        "action_head.future_tokens.weight",
        0x5cce24c498740c9d,
        0.5,
        [0x3e83, 0x3eb5, 0x3bc1, 0x3e9b, 0x3efe, 0xbeba, 0xbebb, 0x3e61],
        0xbe62,
    ),
    (
        "action_head.position_embedding.weight",
        0x804a1780cb65ef2b,
        0.5,
        [0x3ed2, 0x3e9b, 0x3d0b, 0x3eef, 0xbeba, 0x3ea7, 0x3ec2, 0xbd9c],
        0x3db5,
    ),
    (
        "action_head.model.timestep_encoder.timestep_embedder.linear_1.weight",
        0x80b6aca8bfb9728c,
        0.10825317,
        [0xbd67, 0x3ccf, 0x3bea, 0x3dc6, 0xbc25, 0x3d1f, 0xbd58, 0x3d20],
        0xbd15,
    ),
    (
        "action_head.model.transformer_blocks.0.norm1.linear.weight",
        0xd4d83fde3a32aa34,
        0.044194173,
        [0x3c76, 0xbc5a, 0x3ca0, 0x3c60, 0x3c96, 0xbc05, 0x3ac8, 0xbc64],
        0xbd1c,
    ),
    (
        "action_head.model.transformer_blocks.0.attn1.to_k.weight",
        0x9046e334af225e83,
        0.03827328,
        [0x3c9c, 0xbab9, 0xbcc3, 0xbcf5, 0x3bc1, 0x3d12, 0xbc35, 0xbbc3],
        0xbbae,
    ),
    (
        "action_head.model.proj_out_1.weight",
        0x2b97615b91db4082,
        0.044194173,
        [0xbc35, 0xbcdd, 0xbc87, 0xbcf7, 0xbc44, 0xbd32, 0x3ca2, 0x3cb5],
        0xbcf1,
    ),
    (
        "action_head.vl_self_attention.transformer_blocks.3.ff.net.2.weight",
        0x09d1e15c7d185575,
        0.01913664,
        [0x3c78, 0x3c24, 0xbb83, 0x3bd8, 0xbc2b, 0xbc70, 0x3c91, 0xbc0d],
        0xbc31,
    ),
];

fn bytes_of(source: &dyn TensorSource, name: &str) -> Vec<u8> {
    let info = source.info(name).unwrap();
    let mut out = vec![bf16::ZERO; info.elements()];
    source.read_bf16(name, 0, &mut out).unwrap();
    out.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect()
}

fn tiny(file: &str) -> Option<std::path::PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/tiny/a")).join(file);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is absent", path.display());
    None
}

fn tiny_config() -> Option<ModelConfig> {
    let (config, eagle) = (tiny("config.json")?, tiny("eagle_config.json")?);
    Some(ModelConfig::from_files(config, Some(&eagle)).unwrap())
}

#[test]
fn elements_match_the_published_vectors() {
    let weights = Procedural::new(&ModelConfig::n1_5(), 15);
    for (name, base, scale, first, last) in VECTORS {
        let generator = weights.generator(name).unwrap();
        assert_eq!(generator.stream.base(), *base, "{name}");
        assert_eq!(generator.scale, *scale, "{name}");
        let mut out = [bf16::ZERO; 8];
        weights.read_bf16(name, 0, &mut out).unwrap();
        assert_eq!(out.map(bf16::to_bits), *first, "{name}");
        let elements = weights.info(name).unwrap().elements();
        let mut end = [0.0];
        weights.read_f32(name, elements - 1, &mut end).unwrap();
        assert_eq!(bf16::from_f32(end[0]).to_bits(), *last, "{name}");
    }
}

#[test]
fn whole_tensors_match_the_published_hashes() {
    let weights = Procedural::new(&ModelConfig::n1_5(), 15);
    for (name, hash) in [
        ("action_head.vlln.weight", 0x459b14e5ec599e2b),
        ("action_head.state_encoder.layer1.b", 0x5ebfb89c4be283c3),
        ("action_head.future_tokens.weight", 0xf5dfe3c72f6cef50),
    ] {
        assert_eq!(fnv1a64(&bytes_of(&weights, name)), hash, "{name}");
    }
}

#[test]
fn tiny_tensors_match_the_published_hashes() {
    let Some(config) = tiny_config() else { return };
    for (seed, hash) in [(1, 0x3ee50cd38c4cf37e), (20240607, 0x953bc0d3d4483469)] {
        let weights = Procedural::new(&config, seed);
        assert_eq!(fnv1a64(&bytes_of(&weights, "action_head.model.proj_out_2.weight")), hash, "seed {seed}");
    }
}

#[test]
fn seed_one_equals_the_tiny_checkpoint_in_every_byte() {
    let (Some(config), Some(file)) = (tiny_config(), tiny("model.safetensors")) else { return };
    let file = SafetensorsFile::open(file).unwrap();
    let weights = Procedural::new(&config, 1);
    let mut names = weights.names();
    names.sort();
    let mut stored = file.names();
    stored.sort();
    assert_eq!(names, stored);
    for name in names {
        assert_eq!(weights.info(&name), file.info(&name), "{name}");
        assert!(bytes_of(&weights, &name) == bytes_of(&file, &name), "{name}");
    }
}

#[test]
fn any_range_equals_that_part_of_the_whole() {
    let name = "action_head.position_embedding.weight";
    let weights = Procedural::new(&ModelConfig::n1_5(), 3);
    let mut whole = vec![0.0; 1024 * 1536];
    weights.read_f32(name, 0, &mut whole).unwrap();
    for (start, len) in [(0, 1), (1, 7), (65_535, 2), (1000, 300_001), (1024 * 1536 - 5, 5), (1024 * 1536, 0)]
    {
        let mut part = vec![0.0; len];
        weights.read_f32(name, start, &mut part).unwrap();
        assert_eq!(part, whole[start..start + len], "{start}+{len}");
        let mut part = vec![bf16::ZERO; len];
        weights.read_bf16(name, start, &mut part).unwrap();
        assert!(part.iter().zip(&whole[start..]).all(|(a, b)| a.to_f32() == *b), "{start}+{len}");
    }
}

#[test]
fn ranges_and_names_outside_are_refused_by_name() {
    let weights = Procedural::new(&ModelConfig::mini(), 3);
    let error = weights.read_f32("action_head.vlln.bias", 127, &mut [0.0; 2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor action_head.vlln.bias: 2 elements from 127, but shape [128] has 128"
    );
    assert!(weights.read_f32("action_head.vlln.bias", usize::MAX, &mut [0.0; 2]).is_err());
    let error = weights.read_bf16("nope", 0, &mut []).unwrap_err();
    assert_eq!(error.to_string(), "tensor nope: not in synthetic weights, seed 3");
}

#[test]
fn dotted_paths_reach_procedural_weights() {
    let root = Weights::new(std::sync::Arc::new(Procedural::new(&ModelConfig::n1_5(), 15)));
    let norm = root.pp("action_head").pp("vlln");
    assert_eq!(norm.bf16("weight", &[2048]).unwrap()[0].to_bits(), 0x3f73);
    let rows = norm.f32_rows("bias", &[2048], 2046..2048).unwrap();
    assert_eq!(bf16::from_f32(rows[1]).to_bits(), 0xbc01);
}

#[test]
fn input_arrays_match_the_published_values() {
    let noise = gaussian_array(15, "input.noise", 16 * 32);
    let wanted = [0.5295249819755554, 0.30636894702911377, 0.5535611510276794, -0.645538866519928];
    assert_eq!(noise[..4], wanted.map(|v: f64| v as f32));
    let arm = uniform_array(21, "state.fourier_gr1_arms_only.left_arm", 7, -3.0, 3.0);
    let wanted = [
        -2.3583478927612305,
        -1.8429465293884277,
        0.3051745891571045,
        -0.6191360950469971,
        -0.2889697551727295,
        -2.2578577995300293,
        -2.5237722396850586,
    ];
    assert_eq!(arm, wanted.map(|v: f64| v as f32));
}

#[test]
fn input_arrays_match_the_tiny_golden() {
    let Some(file) = tiny("golden.safetensors") else { return };
    let golden = SafetensorsFile::open(file).unwrap();
    let stored = |name: &str| {
        let mut out = vec![0.0; golden.info(name).unwrap().elements()];
        golden.read_f32(name, 0, &mut out).unwrap();
        out
    };
    assert_eq!(
        uniform_array(1, "input.pixel_values", 3 * 56 * 56, -1.0, 1.0),
        stored("in.eagle_pixel_values")
    );
    assert_eq!(uniform_array(1, "input.state", 10, -1.0, 1.0), stored("in.state"));
    assert_eq!(gaussian_array(1, "input.noise", 8 * 7), stored("in.noise"));
    let ids = golden.read_i64("in.eagle_input_ids").unwrap();
    let text = id_array(1, "input.text_ids", ids.len(), 290);
    // Image tokens (300) displace text ids, which keep the stream's order.
    let kept: Vec<u32> = ids.iter().filter(|&&id| id != 300).map(|&id| u32::try_from(id).unwrap()).collect();
    assert!(!kept.is_empty());
    assert_eq!(kept, text[..kept.len()]);
}
