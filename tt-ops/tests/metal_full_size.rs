//! TTNN accepts the large ops of GR00T N1.5 at their full size (a list written by hand), and each fits a core: planned, not
//! run, on whatever there is (card, functional simulator, or the mock device of `TT_METAL_MOCK_CLUSTER_DESC_PATH`). Says
//! that it was skipped where there is none.
#![cfg(feature = "metal")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::metal::MetalOptions;
use tt_ops::ops::{self, Heads, LayerNorm, Linear, RmsNorm, Sdpa};
use tt_ops::{Activation, Bfloat16, DataType, Device, Float32, MemoryConfig, Metal, Result, Tensor, Weight};

/// Local memory of a core that kernels may use.
const L1_BYTES: u64 = 1464 * 1024;

/// Rows of a stage, inputs, outputs, data type of the weight, activation, residual.
type LinearCall = (&'static str, usize, usize, usize, DataType, Option<Activation>, bool);

const LINEARS: [LinearCall; 24] = {
    use DataType::{Bfloat8B as B8, Bfloat16 as B16};
    const GELU: Option<Activation> = Some(Activation::GeluTanh);
    [
        ("vision patches", 256, 588, 1152, B16, None, false),
        ("vision qkv", 256, 1152, 3456, B16, None, false),
        ("vision out", 256, 1152, 1152, B16, None, true),
        ("vision fc1", 256, 1152, 4304, B16, GELU, false),
        ("vision fc2", 256, 4304, 1152, B16, None, true),
        ("connector", 256, 1152, 2048, B16, None, false),
        ("llm qkv", 320, 2048, 4096, B16, None, false),
        ("llm out", 320, 2048, 2048, B16, None, true),
        ("llm up and gate", 320, 2048, 12288, B16, None, false),
        ("llm down", 320, 6144, 2048, B16, None, true),
        ("llm down, bfloat8_b", 320, 6144, 2048, B8, None, true),
        ("llm qkv, 384 rows", 384, 2048, 4096, B16, None, false),
        ("adapter qkv", 320, 2048, 6144, B16, None, false),
        ("adapter out", 320, 2048, 2048, B16, None, true),
        ("adapter fc1", 320, 2048, 8192, B16, GELU, false),
        ("adapter fc2", 320, 8192, 2048, B16, None, true),
        ("dit cross k and v", 320, 2048, 3072, B8, None, false),
        ("dit q", 49, 1536, 1536, B8, None, false),
        ("dit qkv", 49, 1536, 4608, B8, None, false),
        ("dit out", 49, 1536, 1536, B8, None, true),
        ("dit ff1", 49, 1536, 6144, B8, GELU, false),
        ("dit ff2", 49, 6144, 1536, B8, None, true),
        ("dit projection", 49, 1536, 1024, B8, None, false),
        ("action decoder", 49, 1024, 1024, B8, Some(Activation::Relu), false),
    ]
};

/// Heads, kv heads, head size, queries, keys, causal, masked.
type AttentionCall = (&'static str, usize, usize, usize, usize, usize, bool, bool);

const ATTENTIONS: [AttentionCall; 5] = [
    ("vision", 16, 16, 72, 256, 256, false, false),
    ("llm", 16, 8, 128, 320, 320, true, false),
    ("adapter", 32, 32, 64, 320, 320, false, true),
    ("dit cross", 32, 32, 48, 49, 320, false, true),
    ("dit self", 32, 32, 48, 49, 49, false, false),
];

/// Where the model has the DiT's stream.
const L1: MemoryConfig = MemoryConfig::L1_WIDTH_SHARDED;

fn zeros(device: &Metal, shape: impl Into<tt_ops::Shape>) -> Tensor<Metal, Bfloat16> {
    Tensor::zeros(device, shape).unwrap()
}

/// Notes what an op needs, or what is wrong with it.
fn judge<O>(device: &Metal, name: &str, problems: &mut Vec<String>, body: impl FnOnce() -> Result<O>) {
    match device.query(body) {
        Ok((_, needs)) => {
            println!("{name} | {} | {}", needs.circular_buffers, needs.l1_total);
            if needs.l1_total > L1_BYTES {
                problems.push(format!("{name}: {} bytes of L1, a core has {L1_BYTES}", needs.l1_total));
            }
        }
        Err(error) => problems.push(format!("{name}: {error}")),
    }
}

#[test]
fn the_large_ops_of_the_full_size_are_accepted_and_fit() {
    let set = |variable: &str| std::env::var_os(variable).is_some();
    // The simulator goes before the mock device.
    let mock = set("TT_METAL_MOCK_CLUSTER_DESC_PATH") && !set("TT_METAL_SIMULATOR");
    assert!(
        !mock || set("TT_METAL_SLOW_DISPATCH_MODE"),
        "tt-metal crashes when it opens its mock device without TT_METAL_SLOW_DISPATCH_MODE=1"
    );
    if !mock && !set("TT_METAL_SIMULATOR") && !std::path::Path::new("/dev/tenstorrent").exists() {
        println!("skipped: no card, simulator or mock device");
        return;
    }
    let mut options = MetalOptions::default();
    options.trace_region_size = 0;
    let device = &Metal::open(&options).unwrap();
    println!("{}", device.describe());
    let mut problems = Vec::new();
    for (name, m, k, n, dtype, activation, residual) in LINEARS {
        let (x, bias) = (zeros(device, [1, m, k]), Tensor::<_, Float32>::zeros(device, [n]).unwrap());
        let r = Tensor::<_, Float32>::zeros(device, [1, m, n]).unwrap();
        let w = Weight::from_in_out(device, k, n, dtype, &vec![0.0f32; k * n][..]).unwrap();
        judge(device, name, &mut problems, || {
            if residual {
                let args = Linear::<_, Float32>::new().bias(&bias).maybe_activation(activation);
                let r = if name.starts_with("dit") { ops::to_memory_config(&r, L1)? } else { r.clone() };
                ops::linear(&x, &w, args.residual(&r)).map(drop)
            } else {
                let args = Linear::<_, Bfloat16>::new().bias(&bias).maybe_activation(activation);
                ops::linear(&x, &w, args).map(drop)
            }
        });
    }
    for (name, h, kv, e, sq, sk, causal, masked) in ATTENTIONS {
        let q = zeros(device, [1, h, sq, e]);
        let (k, v) = (zeros(device, [1, kv, sk, e]), zeros(device, [1, kv, sk, e]));
        let mask = zeros(device, [1, 1, sq, sk]);
        judge(device, &format!("{name} attention"), &mut problems, || {
            let args = if causal { Sdpa::new().causal() } else { Sdpa::new() };
            ops::scaled_dot_product_attention(&q, &k, &v, args.maybe_attn_mask(masked.then_some(&mask)))
        });
        let qkv = zeros(device, [1, sq, (h + 2 * kv) * e]);
        judge(device, &format!("{name} heads"), &mut problems, || {
            ops::split_query_key_value_and_split_heads(&qkv, None, Heads::new(h).kv_heads(kv))
        });
        judge(device, &format!("{name} heads merged"), &mut problems, || ops::concatenate_heads(&q));
    }
    for (name, rows, width, place) in [
        ("vision", 256, 1152, MemoryConfig::DRAM),
        ("llm", 320, 2048, MemoryConfig::DRAM),
        ("dit", 49, 1536, MemoryConfig::DRAM),
        ("dit in shards", 49, 1536, L1),
    ] {
        let x = Tensor::<_, Float32>::zeros(device, [1, rows, width]).unwrap();
        let x = ops::to_memory_config(&x, place).unwrap();
        let w = Tensor::<_, Float32>::zeros(device, [width]).unwrap();
        judge(device, &format!("{name} layer_norm"), &mut problems, || {
            ops::layer_norm::<_, _, Bfloat16>(&x, LayerNorm::new(1e-5).weight(&w).bias(&w))
        });
        judge(device, &format!("{name} rms_norm"), &mut problems, || {
            ops::rms_norm::<_, _, Bfloat16>(&x, RmsNorm::new(1e-6).weight(&w))
        });
    }
    let heads = zeros(device, [1, 16, 320, 128]);
    let table = Tensor::<_, Float32>::zeros(device, [320, 128]).unwrap();
    judge(device, "llm rotation", &mut problems, || {
        ops::rotary_embedding::<_, _, Bfloat16>(&heads, &table, &table)
    });
    let up_gate = zeros(device, [1, 320, 12288]);
    judge(device, "llm swiglu", &mut problems, || ops::swiglu::<_, _, Bfloat16>(&up_gate));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
