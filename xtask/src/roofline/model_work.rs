//! FLOPs and bytes of the captured plan against the work of one prediction as counted by hand from the model's description: one
//! view, S = 296, four steps.

use std::collections::HashMap;

use gr00t_host::ModelConfig;
use gr00t_model::{DtypePolicy, Stage};
use tt_ops::{CapturedOp, CapturedOps, CapturedSpec, WeightSpec};

use super::capture::{Geometry, Plan, capture};
use super::card::P150A;
use super::steps::{is_key_value, price};
use super::work::{Totals, Work, work_of};

/// How far a count may be from the page's.
const WITHIN: f64 = 0.02;

const VISION: (f64, f64) = (0.415e9, 222e9);
const LLM: (f64, f64) = (0.604e9, 366e9);
const ADAPTER: (f64, f64) = (0.201e9, 121e9);
const KEY_VALUE: (f64, f64) = (0.050e9, 30e9);
/// The DiT without keys and values, all four steps. Its parameters include the modulation's, which the plan reads at load.
const DIT: (f64, f64) = (0.500e9, 4.0 * 41e9);
/// Encoders and decoder, four steps.
const ENCODERS: (f64, f64) = (0.009e9, 1e9);

fn plan(policy: DtypePolicy) -> Plan {
    // a bucket of one token pads nothing
    let geometry = Geometry { views: 1, tokens: 296, bucket: 1, steps: 4, policy };
    capture(&ModelConfig::n1_5(), geometry).unwrap()
}

fn ops(plan: &Plan, stage: Stage) -> &CapturedOps {
    &plan.stages.iter().find(|(s, _)| *s == stage).unwrap().1
}

/// The sum of `of` over all weights that `ops` read, each once.
fn weights(ops: &[CapturedOp], of: fn(&WeightSpec) -> usize) -> usize {
    let each: HashMap<usize, usize> = ops
        .iter()
        .flat_map(|op| &op.inputs)
        .filter_map(|operand| match &operand.spec {
            CapturedSpec::Weight(w) => Some((operand.memory, of(w))),
            CapturedSpec::Tensor(_) => None,
        })
        .collect();
    each.values().sum()
}

fn parameters(ops: &[CapturedOp]) -> f64 {
    weights(ops, |w| w.k * w.n) as f64
}

fn assert_near(what: &str, got: f64, wanted: f64) {
    assert!(
        (got / wanted - 1.0).abs() <= WITHIN,
        "{what}: got {got:.4e}, wanted {wanted:.4e} within {WITHIN}"
    );
}

#[test]
fn parameters_and_flops_are_those_of_the_model() {
    let plan = plan(DtypePolicy::Bf16);
    for (stage, (elements, flops)) in [(Stage::Vision, VISION), (Stage::Llm, LLM), (Stage::Adapter, ADAPTER)]
    {
        let ops = ops(&plan, stage);
        assert_near(&format!("parameters of {stage}"), parameters(&ops.ops), elements);
        assert_near(&format!("flops of {stage}"), ops.flops() as f64, flops);
    }
    let denoise = ops(&plan, Stage::Denoise);
    let of_key_values: Vec<Work> = work_of(denoise).into_iter().filter(|w| is_key_value(w, 296)).collect();
    let flops = of_key_values.iter().map(|w| w.flops).sum::<u64>() as f64;
    assert_near("flops of keys and values", flops, KEY_VALUE.1);
    let weights = of_key_values.iter().filter_map(|w| w.matmul);
    // heads of 48 are padded to 64 on the card
    let elements = weights.map(|m| m.k * m.n * 48 / 64).sum::<usize>() as f64;
    assert_near("parameters of keys and values", elements, KEY_VALUE.0);

    let elements = parameters(&denoise.ops) + parameters(&plan.at_load);
    assert_near("parameters of denoise", elements, KEY_VALUE.0 + DIT.0 + ENCODERS.0);
    assert_near("flops of denoise", denoise.flops() as f64, KEY_VALUE.1 + DIT.1 + ENCODERS.1);
}

#[test]
fn bytes_are_the_parameters_in_the_policys_type() {
    /// Of 16 values in bfp8_b: 16 bytes and an exponent.
    const BFP8: f64 = 17.0 / 16.0;
    let bytes = |plan: &Plan, stage| weights(&ops(plan, stage).ops, |w| w.dtype.bytes(w.k * w.n)) as f64;
    let (bf16, mixed) = (plan(DtypePolicy::Bf16), plan(DtypePolicy::Mixed));
    for (stage, (elements, _)) in [(Stage::Llm, LLM), (Stage::Adapter, ADAPTER)] {
        assert_near(&format!("bf16 bytes of {stage}"), bytes(&bf16, stage), 2.0 * elements);
        assert_near(&format!("bfp8_b bytes of {stage}"), bytes(&mixed, stage), BFP8 * elements);
    }
    assert_near("bf16 bytes of vision", bytes(&mixed, Stage::Vision), 2.0 * VISION.0);
}

#[test]
fn heads_are_padded_where_sdpa_wants_it() {
    let plan = plan(DtypePolicy::Bf16);
    let widths = |stage| {
        let mut widths: Vec<(usize, usize)> =
            work_of(ops(&plan, stage)).iter().filter_map(|w| w.matmul.map(|m| (m.k, m.n))).collect();
        widths.sort_unstable();
        widths.dedup();
        widths
    };
    // 16 heads of 72 become 16 of 96: the projection into heads is 3 x 1536 wide, the one out of them 1536 deep
    assert_eq!(
        widths(Stage::Vision),
        [(588, 1152), (1152, 2048), (1152, 4304), (1152, 4608), (1536, 1152), (4304, 1152)]
    );
    // heads of 128 stay
    assert_eq!(widths(Stage::Llm), [(2048, 2048), (2048, 4096), (2048, 12288), (6144, 2048)]);
}

#[test]
fn the_plan_repeats_with_its_steps() {
    let of = |steps| {
        let geometry = Geometry { views: 1, tokens: 296, bucket: 32, steps, policy: DtypePolicy::MixedDit };
        let plan = capture(&ModelConfig::mini(), geometry).unwrap();
        ops(&plan, Stage::Denoise).ops.len()
    };
    let (one, two, four) = (of(1), of(2), of(4));
    assert_eq!(four - two, 2 * (two - one));
    assert!(two > one);
}

#[test]
fn steps_lead_from_the_stock_plan_towards_the_floor() {
    let geometry = Geometry { views: 1, tokens: 296, bucket: 32, steps: 4, policy: DtypePolicy::MixedDit };
    let config = ModelConfig::n1_5();
    let steps = price(&config, geometry, &P150A).unwrap();
    assert_eq!(steps.sequence, 384);
    let totals: Vec<f64> = steps.next.iter().filter_map(|step| step.total_ms).collect();
    assert!(totals.is_sorted_by(|a, b| a >= b) && totals.first() <= Some(&steps.start_ms), "{totals:?}");
    let plan = capture(&config, Geometry { policy: DtypePolicy::Mixed, ..geometry }).unwrap();
    let floor: f64 = plan.stages.iter().map(|(_, ops)| Totals::of(&work_of(ops), &P150A).floor_ms).sum();
    assert!(totals.last() > Some(&floor), "{totals:?} {floor}");
    // what has been made already is worth something, and is not what the device computes anyway
    assert!(
        steps.made.iter().all(|step| (0.0..steps.start_ms / 2.0).contains(&step.alone_ms)),
        "{:?}",
        steps.made
    );
}
