//! What the ops of a capture are on a card: launches, bytes of weights padded as TTNN wants them, FLOPs, and times.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use tt_ops::{CapturedOp, CapturedOperand, CapturedOps, CapturedSpec, DataType, Op, TensorSpec, WeightSpec};

use super::card::{Card, OpCost, TILE};

/// One captured op as the card runs it.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) matmul: Option<Matmul>,
    /// Launches beside the matmul's own.
    pub(super) others: usize,
    pub(super) flops: u64,
    /// Extents of the first result.
    pub(super) result: Vec<usize>,
    /// Bytes of activations in and out, in bf16.
    pub(super) activation_bytes: u64,
}

/// A matmul with a weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matmul {
    pub(super) rows: usize,
    /// With head widths padded.
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) dtype: DataType,
    pub(super) residual: bool,
}

impl Matmul {
    /// Bytes of the weight in tiles.
    pub(super) fn bytes(&self) -> u64 {
        self.dtype.bytes(self.k.next_multiple_of(TILE) * self.n.next_multiple_of(TILE)) as u64
    }

    /// Whether these are the few rows of the DiT.
    fn has_few_rows(&self) -> bool {
        self.rows <= 2 * TILE
    }

    /// Least time that reading the weight takes.
    pub(super) fn dram_us(&self, card: &Card) -> f64 {
        let gbs = if self.dtype == DataType::Bfloat16 { card.bf16_gbs } else { card.bfp8_gbs };
        self.bytes() as f64 / gbs / 1e3
    }

    /// Least time of the busiest core: tile rows over the grid's rows, tile columns over its columns; or, where there are fewer tile
    /// rows than rows of cores, tile columns over all cores.
    pub(super) fn compute_us(&self, card: &Card) -> f64 {
        let [rows, columns] = card.grid;
        let [m, k, n] = [self.rows, self.k, self.n].map(|extent| extent.div_ceil(TILE));
        let tiles = if m < rows / 2 {
            m * n.div_ceil(rows * columns)
        } else {
            m.div_ceil(rows) * n.div_ceil(columns)
        };
        (tiles * k) as f64 * card.cycles_per_tile / card.matmul_share / card.clock_hz * 1e6
    }

    /// Time under a cost model.
    pub(super) fn us(&self, card: &Card, cost: &OpCost) -> f64 {
        let few = usize::from(self.has_few_rows());
        let read = self.bytes() as f64 / cost.weight_gbs[few] / 1e3;
        cost.matmul_us[few] + read.max(self.compute_us(card))
    }
}

/// Sums over a list of ops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) matmuls: usize,
    pub(super) others: usize,
    pub(super) weight_bytes: u64,
    pub(super) activation_bytes: u64,
    pub(super) flops: u64,
    pub(super) dram_ms: f64,
    pub(super) compute_ms: f64,
    /// The larger of the two, op by op.
    pub(super) floor_ms: f64,
    pub(super) launch_ms: f64,
    pub(super) stock_ms: f64,
    pub(super) tuned_ms: f64,
}

impl Totals {
    /// Of `work` on `card`.
    pub(super) fn of<'a>(work: impl IntoIterator<Item = &'a Work>, card: &Card) -> Self {
        let mut t = Self::default();
        for w in work {
            t.others += w.others;
            t.flops += w.flops;
            t.activation_bytes += w.activation_bytes;
            if let Some(m) = &w.matmul {
                t.matmuls += 1;
                t.weight_bytes += m.bytes();
                t.dram_ms += m.dram_us(card) / 1e3;
                t.compute_ms += m.compute_us(card) / 1e3;
                t.floor_ms += m.dram_us(card).max(m.compute_us(card)) / 1e3;
            }
            t.stock_ms += w.ms(card, &card.stock, &card.stock);
            t.tuned_ms += w.ms(card, &card.tuned, &card.tuned);
        }
        t.launch_ms = (t.matmuls + t.others) as f64 * card.launch_us / 1e3;
        t
    }

    /// Both together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            matmuls: self.matmuls + other.matmuls,
            others: self.others + other.others,
            weight_bytes: self.weight_bytes + other.weight_bytes,
            activation_bytes: self.activation_bytes + other.activation_bytes,
            flops: self.flops + other.flops,
            dram_ms: self.dram_ms + other.dram_ms,
            compute_ms: self.compute_ms + other.compute_ms,
            floor_ms: self.floor_ms + other.floor_ms,
            launch_ms: self.launch_ms + other.launch_ms,
            stock_ms: self.stock_ms + other.stock_ms,
            tuned_ms: self.tuned_ms + other.tuned_ms,
        }
    }
}

impl Work {
    /// Time with matmuls as `matmul` says and other ops as `other` says.
    pub(super) fn ms(&self, card: &Card, matmul: &OpCost, other: &OpCost) -> f64 {
        let matmul = self.matmul.map_or(0.0, |m| m.us(card, matmul));
        (matmul + self.others as f64 * other.other_us) / 1e3
    }
}

/// The ops of a trace as the card runs them.
pub(super) fn work_of(ops: &CapturedOps) -> Vec<Work> {
    let padded = head_padding(ops);
    ops.ops.iter().filter(|op| !op.is_view).map(|op| work(op, padded.get(&op.index).copied())).collect()
}

/// How the widths of a projection grow with its heads.
#[derive(Debug, Clone, Copy)]
enum Padding {
    /// Columns of a projection into heads.
    Columns(usize, usize),
    /// Rows of the projection out of them.
    Rows(usize, usize),
}

fn work(op: &CapturedOp, padding: Option<Padding>) -> Work {
    const BF16: u64 = 2;
    let volume = |o: &CapturedOperand| tensor(o).map_or(0, |t| t.shape.volume() as u64);
    let matmul = match (&op.op, op.inputs.first().and_then(tensor), op.inputs.get(1).and_then(weight)) {
        (Op::Linear { residual, .. }, Some(x), Some(w)) => {
            let (mut k, mut n) = (w.k, w.n);
            match padding {
                Some(Padding::Columns(from, to)) => n = n / from * to,
                Some(Padding::Rows(from, to)) => k = k / from * to,
                None => {}
            }
            Some(Matmul { rows: x.shape.rows(), k, n, dtype: w.dtype, residual: *residual })
        }
        _ => None,
    };
    let others = match (&op.op, &matmul) {
        (Op::Linear { .. }, Some(m)) => usize::from(m.residual),
        (Op::Swiglu { .. }, _) => 3,
        _ => 1,
    };
    Work {
        matmul,
        others,
        flops: op.flops,
        result: op.outputs.first().and_then(tensor).map_or(Vec::new(), |t| t.shape.dims().to_vec()),
        activation_bytes: BF16 * op.inputs.iter().chain(&op.outputs).map(volume).sum::<u64>(),
    }
}

fn tensor(operand: &CapturedOperand) -> Option<&TensorSpec> {
    match &operand.spec {
        CapturedSpec::Tensor(spec) => Some(spec),
        CapturedSpec::Weight(_) => None,
    }
}

fn weight(operand: &CapturedOperand) -> Option<&WeightSpec> {
    match &operand.spec {
        CapturedSpec::Weight(spec) => Some(spec),
        CapturedSpec::Tensor(_) => None,
    }
}

/// Projections into and out of heads whose width is not a multiple of a tile's, which SDPA refuses: by op.
fn head_padding(ops: &CapturedOps) -> HashMap<usize, Padding> {
    let mut made_by = HashMap::new();
    let mut out_of_heads: HashSet<usize> = HashSet::new();
    let mut found = HashMap::new();
    let mut width = TILE;
    for op in &ops.ops {
        match &op.op {
            Op::ScaledDotProductAttention { .. } => {
                width = op.inputs.first().and_then(tensor).map_or(TILE, |q| q.shape.last());
                if width.is_multiple_of(TILE) {
                    continue;
                }
                let padding = Padding::Columns(width, width.next_multiple_of(TILE));
                for operand in op.inputs.iter().take(3) {
                    if let Some(linear) = projection(&made_by, operand.memory) {
                        found.insert(linear, padding);
                    }
                }
            }
            Op::ConcatenateHeads if !width.is_multiple_of(TILE) => {
                out_of_heads.extend(op.outputs.iter().map(|o| o.memory));
            }
            Op::Linear { .. } if op.inputs.first().is_some_and(|x| out_of_heads.contains(&x.memory)) => {
                found.insert(op.index, Padding::Rows(width, width.next_multiple_of(TILE)));
            }
            _ => {}
        }
        made_by.extend(op.outputs.iter().map(|o| (o.memory, op)));
    }
    found
}

/// The matmul that `memory` comes from, through ops that only move values.
fn projection(made_by: &HashMap<usize, &CapturedOp>, mut memory: usize) -> Option<usize> {
    loop {
        let op = made_by.get(&memory)?;
        match op.op {
            Op::Linear { .. } => return Some(op.index),
            Op::Slice { .. }
            | Op::Reshape { .. }
            | Op::Permute { .. }
            | Op::SplitQueryKeyValueAndSplitHeads { .. } => memory = op.inputs.first()?.memory,
            _ => return None,
        }
    }
}
