//! What each design choice buys: the plan as captured, with one thing changed at a time, and with one after another.

use gr00t_host::ModelConfig;
use gr00t_model::{DtypePolicy, Part, Stage};
use serde::Serialize;
use tt_ops::{CapturedOp, CapturedSpec, Op};

use anyhow::Result;

use super::capture::{Geometry, Plan, capture};
use super::card::{Card, OpCost};
use super::work::{Matmul, Work, work_of};

/// Sequence that the Python port pads to.
pub(super) const PORT_SEQUENCE: usize = 384;

/// A way to run the model.
#[derive(Debug, Clone, Copy)]
struct Way {
    geometry: Geometry,
    matmul: OpCost,
    other: OpCost,
    /// Whether a residual is added in its matmul's epilogue.
    residual_fused: bool,
}

/// What a step changes.
type Change = fn(&mut Way, &Card);

/// A step with its price.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Step {
    pub(super) what: String,
    /// Saved alone, or, of a choice that the plan has already made, what it would cost not to have it.
    pub(super) alone_ms: f64,
    /// Total with this step and all steps above it.
    pub(super) total_ms: Option<f64>,
}

/// The comparison with the Python port.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Steps {
    pub(super) sequence: usize,
    /// The plan at the port's sequence, with stock ops.
    pub(super) start_ms: f64,
    pub(super) made: Vec<Step>,
    pub(super) next: Vec<Step>,
}

/// Prices every step, for a geometry with the port's sequence.
///
/// # Errors
/// As [`capture`].
pub(super) fn price(config: &ModelConfig, geometry: Geometry, card: &Card) -> Result<Steps> {
    let geometry = Geometry { bucket: PORT_SEQUENCE, ..geometry };
    let plan = capture(config, geometry)?;
    let start = Way { geometry, matmul: card.stock, other: card.stock, residual_fused: false };
    let start_ms = total_ms(&plan, &start, card);
    let made = vec![
        Step {
            what: "K/V of the cross-attentions once, not per step".into(),
            alone_ms: (geometry.steps as f64 - 1.0) * key_values_ms(&plan, card),
            total_ms: None,
        },
        Step {
            what: "modulation at load, not per step".into(),
            alone_ms: geometry.steps as f64 * modulation_ms(&plan, card),
            total_ms: None,
        },
        Step {
            what: "all steps in one trace, not one each".into(),
            alone_ms: (geometry.steps as f64 - 1.0) * card.boundary_us / 1e3,
            total_ms: None,
        },
    ];

    let changes: [(&str, Change); 5] = [
        ("sequence padded to a multiple of 32", |way, _| way.geometry.bucket = 32),
        ("explicit matmul configs", |way, card| way.matmul = card.tuned),
        ("sharded layouts for all other ops", |way, card| way.other = card.tuned),
        ("residual in the matmul's epilogue", |way, _| way.residual_fused = true),
        ("bfp8_b for LLM and adapter (mixed)", |way, _| way.geometry.policy = DtypePolicy::Mixed),
    ];
    let mut together = start;
    let mut next = Vec::new();
    for (what, change) in changes {
        let mut alone = start;
        change(&mut alone, card);
        change(&mut together, card);
        let alone_ms = start_ms - total_ms(&capture(config, alone.geometry)?, &alone, card);
        let total = total_ms(&capture(config, together.geometry)?, &together, card);
        next.push(Step { what: what.into(), alone_ms, total_ms: Some(total) });
    }
    Ok(Steps { sequence: geometry.sequence(), start_ms, made, next })
}

/// Time of a whole prediction.
fn total_ms(plan: &Plan, way: &Way, card: &Card) -> f64 {
    let ops = plan.stages.iter().flat_map(|(_, ops)| work_of(ops));
    let device: f64 = ops
        .map(|mut work| {
            if way.residual_fused && work.matmul.is_some() {
                work.others = 0;
            }
            work.ms(card, &way.matmul, &way.other)
        })
        .sum();
    // the host's share goes with the matmuls' configs: both are what a tuned port has
    device + way.matmul.host_us / 1e3
}

/// What computes keys and values of the observation: the ops of the denoiser whose result has the sequence's rows.
pub(super) fn is_key_value(work: &Work, sequence: usize) -> bool {
    let from_memory = work.matmul.is_some_and(|m| m.rows == sequence);
    let moves = work.matmul.is_none() && work.flops == 0;
    from_memory || (moves && work.result.contains(&sequence))
}

fn key_values_ms(plan: &Plan, card: &Card) -> f64 {
    let sequence = plan.geometry.sequence();
    let denoise = plan.stages.iter().filter(|(stage, _)| *stage == Stage::Denoise);
    denoise
        .flat_map(|(_, ops)| work_of(ops))
        .filter(|work| is_key_value(work, sequence))
        .map(|work| work.ms(card, &card.stock, &card.stock))
        .sum()
}

/// One step's time embedding and modulation, from the ops that ran at load: each matmul on one row, its weight in the denoiser's
/// data type; and a product and a sum for each norm that would no longer have the modulation as weight and bias.
fn modulation_ms(plan: &Plan, card: &Card) -> f64 {
    const MODULATE: usize = 2;
    let (mut ms, mut norms) = (0.0, 0);
    for op in plan.at_load.iter().filter(|op| !op.is_view) {
        let matmul = load_matmul(op, plan.geometry.policy);
        if matmul.is_some_and(|m| m.n == 2 * m.k) {
            norms += 1;
        }
        let others = usize::from(matmul.is_none() && matches!(op.op, Op::Unary { .. }));
        ms +=
            matmul.map_or(0.0, |m| m.us(card, &card.stock)) / 1e3 + others as f64 * card.stock.other_us / 1e3;
    }
    ms + (MODULATE * norms) as f64 * card.stock.other_us / 1e3
}

fn load_matmul(op: &CapturedOp, policy: DtypePolicy) -> Option<Matmul> {
    op.inputs.iter().find_map(|operand| match &operand.spec {
        CapturedSpec::Weight(w) => {
            let dtype = policy.weights(Part::Denoise);
            Some(Matmul { rows: 1, k: w.k, n: w.n, dtype, residual: false })
        }
        CapturedSpec::Tensor(_) => None,
    })
}
