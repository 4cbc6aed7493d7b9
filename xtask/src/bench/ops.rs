//! Kernels at the shapes that the stages call them with, on made-up values.

use anyhow::Result;
use gr00t_host::ModelConfig;
use gr00t_model::Part;
use half::bf16;
use tt_ops::DataType;
use tt_soft::{
    Engine, Epilogue, Norm, PackedWeight, SdpaConfig, View, ViewMut, WeightFormat, WeightOrder, layer_norm,
    linear, sdpa,
};

use super::limits::Limits;
use super::measure::Times;
use super::report::Report;
use crate::device::DeviceArgs;

const RUNS: usize = 31;
/// Tokens of one view and a prompt of 40.
const SEQUENCE: usize = 296;

/// Times every op that is asked for.
pub(super) fn run(
    config: &ModelConfig,
    device: &DeviceArgs,
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    if !report.wants_some("op/") {
        return Ok(());
    }
    let opened = device.open()?;
    let engine = Engine::new(opened.isa(), opened.threads())?;
    let ops = Ops { engine, limits };
    for (name, part, [m, k, n]) in linears(config) {
        let format = match device.policy.weights(part) {
            DataType::Float32 => WeightFormat::F32,
            DataType::Bfloat8B => WeightFormat::Bfp8B,
            DataType::Bfloat4B => WeightFormat::Bfp4B,
            _ => WeightFormat::Bf16,
        };
        let name = format!("op/linear/{name}/{}/{m}x{k}x{n}", format.name());
        if report.wants(&name) {
            ops.linear(name, format, [m, k, n], report)?;
        }
    }
    for (name, [heads, kv_heads, queries, keys, width]) in attentions(config) {
        let name = format!("op/sdpa/{name}/{heads}x{queries}x{keys}x{width}");
        if report.wants(&name) {
            ops.sdpa(name, [heads, kv_heads, queries, keys, width], report)?;
        }
    }
    let (rows, width) = (SEQUENCE, config.eagle.text_config.hidden_size);
    let name = format!("op/layer_norm/{rows}x{width}");
    if report.wants(&name) {
        ops.layer_norm(name, [1, 1, rows, width], report)?;
    }
    Ok(())
}

/// Tokens of the DiT: state, future tokens, actions.
fn dit_tokens(config: &ModelConfig) -> usize {
    1 + config.gr00t.action_head_cfg.num_target_vision_tokens + config.gr00t.action_horizon
}

/// Rows, inputs and outputs of the projections.
fn linears(config: &ModelConfig) -> Vec<(&'static str, Part, [usize; 3])> {
    let (vision, text) = (&config.eagle.vision_config, &config.eagle.text_config);
    let head = &config.gr00t.action_head_cfg;
    let (v, fv, t, ft) =
        (vision.hidden_size, vision.intermediate_size, text.hidden_size, text.intermediate_size);
    let qkv = (text.num_attention_heads + 2 * text.num_key_value_heads) * text.head_dim;
    let patches = (vision.image_size / vision.patch_size).pow(2);
    let dit = &head.diffusion_model_cfg;
    let (d, rows) = (dit.attention_head_dim * dit.num_attention_heads, dit_tokens(config));
    let memory = head.backbone_embedding_dim;
    vec![
        ("vision.qkv", Part::Vision, [patches, v, 3 * v]),
        ("vision.out", Part::Vision, [patches, v, v]),
        ("vision.fc1", Part::Vision, [patches, v, fv]),
        ("vision.fc2", Part::Vision, [patches, fv, v]),
        ("llm.qkv", Part::Llm, [SEQUENCE, t, qkv]),
        ("llm.up_gate", Part::Llm, [SEQUENCE, t, 2 * ft]),
        ("llm.down", Part::Llm, [SEQUENCE, ft, t]),
        ("adapter.ff1", Part::Adapter, [SEQUENCE, memory, 4 * memory]),
        ("adapter.ff2", Part::Adapter, [SEQUENCE, 4 * memory, memory]),
        ("dit.kv", Part::Denoise, [SEQUENCE, memory, 2 * d]),
        ("dit.qkv", Part::Denoise, [rows, d, 3 * d]),
        ("dit.out", Part::Denoise, [rows, d, d]),
        ("dit.ff1", Part::Denoise, [rows, d, 4 * d]),
        ("dit.ff2", Part::Denoise, [rows, 4 * d, d]),
    ]
}

/// Heads, key heads, queries, keys and head dimension of the attentions.
fn attentions(config: &ModelConfig) -> Vec<(&'static str, [usize; 5])> {
    let (vision, text) = (&config.eagle.vision_config, &config.eagle.text_config);
    let head = &config.gr00t.action_head_cfg;
    let patches = (vision.image_size / vision.patch_size).pow(2);
    let (dit, adapter, rows) = (&head.diffusion_model_cfg, &head.vl_self_attention_cfg, dit_tokens(config));
    let of = |heads, queries, keys, width| [heads, heads, queries, keys, width];
    let v = vision.num_attention_heads;
    let llm = [text.num_attention_heads, text.num_key_value_heads, SEQUENCE, SEQUENCE, text.head_dim];
    vec![
        ("vision", of(v, patches, patches, vision.hidden_size / v.max(1))),
        ("llm", llm),
        ("adapter", of(adapter.num_attention_heads, SEQUENCE, SEQUENCE, adapter.attention_head_dim)),
        ("dit.self", of(dit.num_attention_heads, rows, rows, dit.attention_head_dim)),
        ("dit.cross", of(dit.num_attention_heads, rows, SEQUENCE, dit.attention_head_dim)),
    ]
}

struct Ops<'a> {
    engine: Engine,
    limits: &'a Limits,
}

impl Ops<'_> {
    fn linear(
        &self,
        name: String,
        format: WeightFormat,
        [m, k, n]: [usize; 3],
        report: &mut Report,
    ) -> Result<()> {
        let (x, w) = (values(m * k), values(n * k));
        let source = View::contiguous(&w, [1, 1, n, k])?;
        let weight = PackedWeight::pack(&self.engine, &[source], WeightOrder::OutIn, format)?;
        let x = View::contiguous(&x, [1, 1, m, k])?;
        let mut out = vec![bf16::ZERO; m * n];
        let times = Times::of(RUNS, || {
            let mut out = ViewMut::contiguous(&mut out, [1, 1, m, n])?;
            linear(&self.engine, &x, &weight, &Epilogue::default(), &mut out)
        })?;
        let bytes = weight.bytes() + 2 * m * (k + n);
        report.times(name, &times, Some(self.limits.work(2.0 * (m * k * n) as f64, bytes as f64)));
        Ok(())
    }

    fn sdpa(
        &self,
        name: String,
        [heads, kv_heads, queries, keys, width]: [usize; 5],
        report: &mut Report,
    ) -> Result<()> {
        let (q, kv) = (values(heads * queries * width), values(kv_heads * keys * width));
        let q_view = View::contiguous(&q, [1, heads, queries, width])?;
        let kv_view = View::contiguous(&kv, [1, kv_heads, keys, width])?;
        let mut out = vec![bf16::ZERO; q.len()];
        let times = Times::of(RUNS, || {
            let mut out = ViewMut::contiguous(&mut out, [1, heads, queries, width])?;
            sdpa(&self.engine, &q_view, &kv_view, &kv_view, &SdpaConfig::default(), &mut out)
        })?;
        let flops = 4.0 * (heads * queries * keys * width) as f64;
        let bytes = 2 * (2 * q.len() + 2 * kv.len());
        report.times(name, &times, Some(self.limits.work(flops, bytes as f64)));
        Ok(())
    }

    fn layer_norm(&self, name: String, shape: [usize; 4], report: &mut Report) -> Result<()> {
        let x: Vec<f32> = values(shape.iter().product()).into_iter().map(bf16::to_f32).collect();
        let view = View::contiguous(&x, shape)?;
        let mut out = vec![bf16::ZERO; x.len()];
        let norm = Norm { weight: None, bias: None, eps: 1e-6 };
        let times = Times::of(RUNS, || {
            layer_norm(&self.engine, &view, &norm, &mut ViewMut::contiguous(&mut out, shape)?)
        })?;
        report.times(name, &times, Some(self.limits.work(0.0, (6 * x.len()) as f64)));
        Ok(())
    }
}

fn values(len: usize) -> Vec<bf16> {
    (0..len).map(|i| bf16::from_f32((i * 7919 % 1013) as f32 / 1013.0 - 0.5)).collect()
}
