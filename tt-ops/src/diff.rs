//! Comparing two traces op by op: the same capture on two devices, instruction set levels, thread counts or dtype
//! policies.
//!
//! ```
//! use tt_ops::soft::{Isa, Soft};
//! use tt_ops::{diff, ops, Bfloat16, CaptureOptions, Device, Tensor};
//! # fn main() -> tt_ops::Result<()> {
//! let stage = |device: &Soft| {
//!     let x = Tensor::<_, Bfloat16>::from_span(device, [2, 64], &[0.3f32; 128])?;
//!     device.capture_with(CaptureOptions::default().keep_all(), |_| -> tt_ops::Result<_> {
//!         let y: Tensor<_, Bfloat16> = ops::gelu(&x, ops::Gelu::Tanh)?;
//!         ops::layer_norm::<_, _, Bfloat16>(&y, ops::LayerNorm::new(1e-5))
//!     })
//! };
//! let (one, two) = (Soft::builder().isa(Isa::Portable).open()?, Soft::open()?);
//! let report = diff::compare(&stage(&one)?, &stage(&two)?, diff::usual_limit)?;
//! assert!(report.first().is_none(), "{report}");
//! # Ok(())
//! # }
//! ```

use serde::Serialize;

use crate::captured::{CapturedOp, CapturedSpec};
use crate::device::Device;
use crate::dtype::{DataType, HostSliceMut};
use crate::error::{Result, TtError};
use crate::spec::TensorSpec;
use crate::suite::Difference;
use crate::trace::Trace;

const OP: &str = "diff";

/// How far one op's result is apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OpDifference {
    /// Position in the trace.
    pub index: usize,
    /// Name, operands, results.
    pub signature: String,
    /// How far apart; the worst where there are several results.
    pub difference: Difference,
    /// What it may be, as a relative root mean square.
    pub limit: f64,
}

impl OpDifference {
    /// Whether it is further apart than it may be.
    pub fn diverges(&self) -> bool {
        self.difference.relative_rms.is_nan() || self.difference.relative_rms > self.limit
    }
}

/// All ops of two traces, compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// One entry per op that computes something.
    pub ops: Vec<OpDifference>,
}

impl Report {
    /// The first op that diverges.
    pub fn first(&self) -> Option<&OpDifference> {
        self.ops.iter().find(|op| op.diverges())
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:>5} {:>10} {:>10} {:>12} {:>9}  op", "index", "max_abs", "rel_rms", "pcc", "limit")?;
        for op in &self.ops {
            let Difference { max_abs, relative_rms, pcc } = op.difference;
            let mark = if op.diverges() { "  <- diverges" } else { "" };
            writeln!(
                f,
                "{:>5} {max_abs:>10.3e} {relative_rms:>10.3e} {pcc:>12.9} {:>9.1e}  {}{mark}",
                op.index, op.limit, op.signature
            )?;
        }
        Ok(())
    }
}

/// The relative root mean square by which two devices with fp32 sums may differ after some layers: a unit in the last
/// place of what the result is stored in, times a few.
pub fn usual_limit(op: &CapturedOp) -> f64 {
    /// `bfloat16` anywhere before leaves its roundings in every later result.
    const BF16: f64 = 1.0 / 128.0;
    const F32: f64 = 1e-4;
    let narrow = |spec: &CapturedSpec| match spec {
        CapturedSpec::Tensor(spec) => spec.dtype != DataType::Float32,
        CapturedSpec::Weight(spec) => spec.dtype != DataType::Float32,
    };
    if op.inputs.iter().chain(&op.outputs).any(|o| narrow(&o.spec)) { BF16 } else { F32 }
}

/// Replays both traces and compares the results of each op with floats. `a` is what should come out; both were
/// captured with [`CaptureOptions::keep_all`](crate::CaptureOptions::keep_all) from the same ops, and their inputs
/// hold the same values.
///
/// # Errors
/// Traces of different ops, or captured without keeping results.
pub fn compare<A: Device, B: Device, P, Q>(
    a: &Trace<A, P>,
    b: &Trace<B, Q>,
    limit: impl Fn(&CapturedOp) -> f64,
) -> Result<Report> {
    a.replay()?;
    b.replay()?;
    let (wanted, got) = (a.device().captured_results(a.handle()), b.device().captured_results(b.handle()));
    let (ops, others) = (&a.ops().ops, &b.ops().ops);
    if ops.len() != others.len() || wanted.len() != ops.len() || got.len() != ops.len() {
        let counts = format!("{} and {} ops", ops.len(), others.len());
        return Err(TtError::argument(OP, counts, "two captures of the same ops"));
    }
    let mut report = Report::default();
    for (((op, other), wanted), got) in ops.iter().zip(others).zip(&wanted).zip(&got) {
        let shapes =
            |results: &[(TensorSpec, Vec<f32>)]| results.iter().map(|r| r.0.shape).collect::<Vec<_>>();
        let wanted = values(a.device(), wanted)?;
        let got = values(b.device(), got)?;
        if op.op.name() != other.op.name() || shapes(&wanted) != shapes(&got) {
            let got = format!("{} and {}", op.signature(), other.signature());
            return Err(TtError::argument(OP, got, format!("the same op at {}", op.index)));
        }
        if wanted.is_empty() && !op.is_view {
            return Err(TtError::argument(OP, "no results", "captures with keep_all"));
        }
        let differences = wanted.iter().zip(&got).map(|((_, wanted), (_, got))| {
            let wanted: Vec<f64> = wanted.iter().map(|&v| f64::from(v)).collect();
            Difference::between(got, &wanted)
        });
        let worst = differences.max_by(|x, y| x.relative_rms.total_cmp(&y.relative_rms));
        if let Some(difference) = worst.filter(|_| !op.is_view) {
            let (index, signature, limit) = (op.index, op.signature(), limit(op));
            report.ops.push(OpDifference { index, signature, difference, limit });
        }
    }
    Ok(report)
}

/// The float results of one op.
fn values<D: Device>(device: &D, results: &[(D::Buffer, TensorSpec)]) -> Result<Vec<(TensorSpec, Vec<f32>)>> {
    let floats = results.iter().filter(|(_, spec)| spec.dtype.is_float());
    floats
        .map(|(buffer, spec)| {
            let mut out = vec![0.0; spec.shape.volume()];
            device.read(buffer, spec, HostSliceMut::F32(&mut out))?;
            Ok((*spec, out))
        })
        .collect()
}
