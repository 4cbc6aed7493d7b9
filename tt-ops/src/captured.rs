//! The ops of a trace as data: for export, cost tables and timing.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use crate::op::{InputSpec, Op};
use crate::spec::{TensorSpec, WeightSpec};

/// An operand or a result of a captured op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CapturedOperand {
    /// Which memory it is in; views of one tensor share it. Unique within one trace, weights and tensors apart.
    pub memory: usize,
    /// What it holds.
    #[serde(flatten)]
    pub spec: CapturedSpec,
}

/// What an operand holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapturedSpec {
    /// A tensor.
    Tensor(TensorSpec),
    /// A packed weight.
    Weight(WeightSpec),
}

/// One op of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CapturedOp {
    /// Position in the trace.
    pub index: usize,
    /// The op and its attributes.
    #[serde(flatten)]
    pub op: Op,
    /// Operands.
    pub inputs: Vec<CapturedOperand>,
    /// Results.
    pub outputs: Vec<CapturedOperand>,
    /// Whether the device only made views and runs nothing at replay.
    pub is_view: bool,
    /// Bytes read, as the card would (each operand once).
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Floating-point operations.
    pub flops: u64,
}

impl CapturedOp {
    /// Describes one call. `memory` numbers operands, then results.
    pub fn new(
        index: usize,
        op: &Op,
        inputs: Vec<CapturedOperand>,
        outputs: Vec<CapturedOperand>,
        is_view: bool,
    ) -> Self {
        let input_specs: Vec<InputSpec> = inputs
            .iter()
            .map(|i| match &i.spec {
                CapturedSpec::Tensor(spec) => InputSpec::Tensor(*spec),
                CapturedSpec::Weight(spec) => InputSpec::Weight(*spec),
            })
            .collect();
        let output_specs: Vec<TensorSpec> = outputs
            .iter()
            .filter_map(|o| match &o.spec {
                CapturedSpec::Tensor(spec) => Some(*spec),
                CapturedSpec::Weight(_) => None,
            })
            .collect();
        let bytes = |operands: &[CapturedOperand]| {
            if is_view { 0 } else { operands.iter().map(|o| o.spec.bytes() as u64).sum() }
        };
        let flops = op.flops(&input_specs, &output_specs);
        let (bytes_read, bytes_written) = (bytes(&inputs), bytes(&outputs));
        Self { index, op: op.clone(), inputs, outputs, is_view, bytes_read, bytes_written, flops }
    }

    /// One line: name, operands, results.
    pub fn signature(&self) -> String {
        let list = |operands: &[CapturedOperand]| {
            operands.iter().map(|o| o.spec.to_string()).collect::<Vec<_>>().join(", ")
        };
        format!("{}({}) -> {}", self.op.name(), list(&self.inputs), list(&self.outputs))
    }
}

impl CapturedSpec {
    fn bytes(&self) -> usize {
        match self {
            Self::Tensor(spec) => spec.bytes(),
            Self::Weight(spec) => spec.dtype.bytes(spec.k.saturating_mul(spec.n)),
        }
    }
}

impl std::fmt::Display for CapturedSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tensor(spec) => write!(f, "{spec}"),
            Self::Weight(spec) => write!(f, "weight {spec}"),
        }
    }
}

/// The ops of a trace in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CapturedOps {
    /// The ops.
    pub ops: Vec<CapturedOp>,
}

impl CapturedOps {
    /// The list as JSON: an array of ops with shapes, data types, bytes and FLOPs.
    ///
    /// # Errors
    /// None that depend on the trace.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Floating-point operations of all ops.
    pub fn flops(&self) -> u64 {
        self.ops.iter().map(|op| op.flops).sum()
    }

    /// Ops that run something at replay.
    pub fn kernels(&self) -> impl Iterator<Item = &CapturedOp> {
        self.ops.iter().filter(|op| !op.is_view)
    }

    /// Pairs each op with how long it took.
    pub fn with_times(&self, times: &[Duration]) -> Vec<OpTime> {
        let timed = self.ops.iter().zip(times);
        timed
            .map(|(op, &duration)| OpTime {
                index: op.index,
                name: op.op.name(),
                signature: op.signature(),
                duration,
                bytes: op.bytes_read + op.bytes_written,
                flops: op.flops,
            })
            .collect()
    }
}

/// How long one op of a replay took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpTime {
    /// Position in the trace.
    pub index: usize,
    /// TTNN's name.
    pub name: &'static str,
    /// Name, operands, results.
    pub signature: String,
    /// Time from the end of the op before.
    pub duration: Duration,
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
}

/// A table of times, longest first, one line per kind of call (equal signatures are summed).
pub fn time_table(times: &[OpTime]) -> String {
    let total: Duration = times.iter().map(|t| t.duration).sum();
    let mut rows: Vec<(&str, usize, Duration, u64, u64)> = Vec::new();
    for time in times {
        match rows.iter_mut().find(|row| row.0 == time.signature) {
            Some(row) => {
                row.1 += 1;
                row.2 += time.duration;
                row.3 += time.bytes;
                row.4 += time.flops;
            }
            None => rows.push((&time.signature, 1, time.duration, time.bytes, time.flops)),
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.2));
    let mut out =
        format!("{:>10} {:>6} {:>6} {:>9} {:>9}  op\n", "time_us", "share", "calls", "GB/s", "GF/s");
    for (signature, calls, duration, bytes, flops) in rows {
        let seconds = duration.as_secs_f64();
        let share = 100.0 * seconds / total.as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = |n: u64| n as f64 / seconds.max(f64::MIN_POSITIVE) / 1e9;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>10.1} {share:>5.1}% {calls:>6} {:>9.2} {:>9.1}  {signature}",
            seconds * 1e6,
            rate(bytes),
            rate(flops)
        );
    }
    out
}
