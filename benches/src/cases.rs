//! Kernels at the shapes that the stages call them with, for one view.

use gr00t_host::ModelConfig;
use gr00t_model::{DtypePolicy, Part};
use tt_ops::DataType;
use tt_soft::{Activation, WeightFormat};

/// Tokens of one view and a prompt of 40.
pub const SEQUENCE: usize = 296;

/// A kernel at a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `kernel/place/…/shape`.
    pub name: String,
    /// What runs.
    pub kind: Kind,
}

/// A kernel with its extents. Activations are bf16, residual streams float32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// x `[rows, k]` times a packed weight `[k, n]`.
    Linear {
        /// Data type of the weight.
        format: WeightFormat,
        /// Rows of x, columns of x, columns of the result.
        shape: [usize; 3],
        /// In the epilogue.
        activation: Option<Activation>,
    },
    /// Scaled dot-product attention.
    Attention {
        /// Heads, key heads, queries, keys, head dimension.
        shape: [usize; 5],
        /// Whether a query sees only keys up to its own position.
        causal: bool,
    },
    /// float32 rows to bf16, with weight and bias.
    LayerNorm([usize; 2]),
    /// float32 rows to bf16, with a weight.
    RmsNorm([usize; 2]),
    /// `up · silu(gate)` of rows `[up, gate]`; rows, width of the result.
    Swiglu([usize; 2]),
    /// Heads, rows and head dimension.
    Rotary([usize; 3]),
}

impl Kind {
    /// Floating-point operations, as the roofline counts them: those of products.
    pub fn flops(&self) -> f64 {
        match *self {
            Self::Linear { shape, .. } => 2.0 * shape.iter().product::<usize>() as f64,
            Self::Attention { shape: [heads, _, queries, keys, width], causal } => {
                let seen = if causal { queries * (queries + 1) / 2 } else { queries * keys };
                4.0 * (heads * seen * width) as f64
            }
            _ => 0.0,
        }
    }
}

/// Every case of a model of geometry `config` with weights as `policy` says.
pub fn cases(config: &ModelConfig, policy: DtypePolicy) -> Vec<Case> {
    let mut cases = linears(config, policy);
    cases.extend(attentions(config));
    cases.extend(rows(config));
    cases
}

/// Tokens of the DiT: state, future tokens, actions.
fn dit_tokens(config: &ModelConfig) -> usize {
    1 + config.gr00t.action_head_cfg.num_target_vision_tokens + config.gr00t.action_horizon
}

fn patches(config: &ModelConfig) -> usize {
    config.eagle.vision_config.num_patches()
}

fn linears(config: &ModelConfig, policy: DtypePolicy) -> Vec<Case> {
    let (vision, text) = (&config.eagle.vision_config, &config.eagle.text_config);
    let head = &config.gr00t.action_head_cfg;
    let (v, fv, t, ft) =
        (vision.hidden_size, vision.intermediate_size, text.hidden_size, text.intermediate_size);
    let qkv = (text.num_attention_heads + 2 * text.num_key_value_heads) * text.head_dim;
    let (d, rows) = (head.diffusion_model_cfg.inner_dim(), dit_tokens(config));
    let memory = head.backbone_embedding_dim;
    let gelu = Some(Activation::GeluTanh);
    let patches = patches(config);
    [
        ("vision.qkv", Part::Vision, [patches, v, 3 * v], None),
        ("vision.out", Part::Vision, [patches, v, v], None),
        ("vision.fc1", Part::Vision, [patches, v, fv], gelu),
        ("vision.fc2", Part::Vision, [patches, fv, v], None),
        ("llm.qkv", Part::Llm, [SEQUENCE, t, qkv], None),
        ("llm.up_gate", Part::Llm, [SEQUENCE, t, 2 * ft], None),
        ("llm.down", Part::Llm, [SEQUENCE, ft, t], None),
        ("adapter.ff1", Part::Adapter, [SEQUENCE, memory, 4 * memory], gelu),
        ("adapter.ff2", Part::Adapter, [SEQUENCE, 4 * memory, memory], None),
        ("dit.kv", Part::Denoise, [SEQUENCE, memory, 2 * d], None),
        ("dit.qkv", Part::Denoise, [rows, d, 3 * d], None),
        ("dit.out", Part::Denoise, [rows, d, d], None),
        ("dit.ff1", Part::Denoise, [rows, d, 4 * d], gelu),
        ("dit.ff2", Part::Denoise, [rows, 4 * d, d], None),
    ]
    .into_iter()
    .map(|(place, part, shape, activation)| {
        let format = match policy.weights(part) {
            DataType::Float32 => WeightFormat::F32,
            DataType::Bfloat8B => WeightFormat::Bfp8B,
            DataType::Bfloat4B => WeightFormat::Bfp4B,
            _ => WeightFormat::Bf16,
        };
        let [m, k, n] = shape;
        let name = format!("linear/{place}/{}/{m}x{k}x{n}", format.name());
        Case { name, kind: Kind::Linear { format, shape, activation } }
    })
    .collect()
}

fn attentions(config: &ModelConfig) -> Vec<Case> {
    let (vision, text) = (&config.eagle.vision_config, &config.eagle.text_config);
    let head = &config.gr00t.action_head_cfg;
    let (dit, adapter) = (&head.diffusion_model_cfg, &head.vl_self_attention_cfg);
    let (patches, rows) = (patches(config), dit_tokens(config));
    let of = |heads, queries, keys, width| [heads, heads, queries, keys, width];
    let v = vision.num_attention_heads;
    let llm = [text.num_attention_heads, text.num_key_value_heads, SEQUENCE, SEQUENCE, text.head_dim];
    [
        ("vision", of(v, patches, patches, vision.hidden_size / v.max(1)), false),
        ("llm", llm, true),
        ("adapter", of(adapter.num_attention_heads, SEQUENCE, SEQUENCE, adapter.attention_head_dim), false),
        ("dit.self", of(dit.num_attention_heads, rows, rows, dit.attention_head_dim), false),
        ("dit.cross", of(dit.num_attention_heads, rows, SEQUENCE, dit.attention_head_dim), false),
    ]
    .into_iter()
    .map(|(place, shape, causal)| {
        let [heads, _, queries, keys, width] = shape;
        let name = format!("sdpa/{place}/{heads}x{queries}x{keys}x{width}");
        Case { name, kind: Kind::Attention { shape, causal } }
    })
    .collect()
}

fn rows(config: &ModelConfig) -> Vec<Case> {
    let (vision, text) = (&config.eagle.vision_config, &config.eagle.text_config);
    let (heads, width) = (text.num_attention_heads, text.head_dim);
    let case = |name: &str, [rows, width]: [usize; 2], kind: fn([usize; 2]) -> Kind| Case {
        name: format!("{name}/{rows}x{width}"),
        kind: kind([rows, width]),
    };
    vec![
        case("layer_norm/vision", [patches(config), vision.hidden_size], Kind::LayerNorm),
        case("rms_norm/llm", [SEQUENCE, text.hidden_size], Kind::RmsNorm),
        case("swiglu/llm", [SEQUENCE, text.intermediate_size], Kind::Swiglu),
        Case {
            name: format!("rotary/llm/{heads}x{SEQUENCE}x{width}"),
            kind: Kind::Rotary([heads, SEQUENCE, width]),
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_the_weights_type() {
        let cases = cases(&ModelConfig::n1_5(), DtypePolicy::MixedDit);
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        assert!(names.contains("linear/llm.up_gate/bfloat16/296x2048x12288"), "{names:?}");
        assert!(names.contains("linear/dit.ff1/bfloat8_b/49x1536x6144"), "{names:?}");
    }

    #[test]
    fn a_causal_attention_is_half_the_work() {
        let of = |causal| Kind::Attention { shape: [1, 1, 99, 99, 8], causal }.flops();
        assert_eq!(of(true) * 99.0, of(false) * 50.0);
    }
}
