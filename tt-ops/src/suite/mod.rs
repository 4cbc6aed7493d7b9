//! The op suite: each op's cases and tolerance, written once as functions of a device. It runs on whatever device
//! there is, eagerly and as traces; expected values are computed here in f64.
//!
//! ```
//! use tt_ops::{suite, Soft};
//! # fn main() -> tt_ops::Result<()> {
//! let device = Soft::builder().threads(1).open()?;
//! let results = suite::run_op(&device, suite::Mode::Traced, "softmax");
//! assert!(results.iter().all(suite::CaseResult::passed), "{results:#?}");
//! # Ok(())
//! # }
//! ```

mod attention;
mod data;
mod eltwise;
mod heads;
mod matmul;
mod movement;
mod norm;
mod reference;
mod tolerance;

use std::cell::RefCell;

use serde::Serialize;

pub use tolerance::{Difference, Tolerance, card_tolerance, tolerance, ulps};

use crate::device::{Device, Numerics};
use crate::dtype::{DataType, Float, HostScalar, Static};
use crate::error::Result;
use crate::tensor::Tensor;

/// How a case runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Ops run at once.
    Eager,
    /// Ops are captured and replayed, twice.
    Traced,
}

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CaseResult {
    /// TTNN's name of the op.
    pub op: &'static str,
    /// The case.
    pub case: String,
    /// How it ran.
    pub mode: Mode,
    /// How far the result is from the expected one, if there was a result.
    pub difference: Option<Difference>,
    /// The result's data type, if there are values to compare.
    pub dtype: Option<DataType>,
    /// The largest difference in units of the result's last place ([`ulps`]), if there was a result.
    pub max_ulp: Option<f64>,
    /// What the op allows.
    pub tolerance: Tolerance,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl CaseResult {
    /// Whether the result was there and near enough.
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// Told of each case of a run, so that what ends the process can be named.
pub trait Watcher {
    /// Case number `index` of its group is about to run.
    fn starts(&self, index: usize, op: &'static str, case: &str);
    /// It has run.
    fn ends(&self, index: usize, result: &CaseResult);
}

/// What a case gave.
#[derive(Default)]
struct Outcome {
    dtype: Option<DataType>,
    difference: Option<Difference>,
    max_ulp: Option<f64>,
    failure: Option<String>,
}

/// A device with a way to run on it; collects results.
struct Bench<'a, D: Device> {
    device: &'a D,
    mode: Mode,
    /// Cases before this one are passed over.
    first: usize,
    seen: RefCell<usize>,
    watcher: Option<&'a dyn Watcher>,
    results: RefCell<Vec<CaseResult>>,
}

impl<D: Device> Bench<'_, D> {
    fn tensor<T: Static, S: HostScalar<Kind = T::Kind>>(
        &self,
        shape: impl Into<crate::Shape>,
        values: &[S],
    ) -> Result<Tensor<D, T>> {
        Tensor::from_span(self.device, shape, values)
    }

    /// Runs `body` as the mode says.
    fn run<T: Static>(&self, body: impl Fn() -> Result<Tensor<D, T>>) -> Result<Tensor<D, T>> {
        match self.mode {
            Mode::Eager => body(),
            Mode::Traced => {
                let trace = self.device.capture(|_| body())?;
                trace.replay()?;
                trace.replay()?;
                Ok(trace.release())
            }
        }
    }

    /// Runs `body` and compares with `wanted`.
    fn check<T: Float>(
        &self,
        op: &'static str,
        case: impl Into<String>,
        wanted: &[f64],
        body: impl Fn() -> Result<Tensor<D, T>>,
    ) {
        let tolerance = match D::NUMERICS {
            Numerics::Fp32 => tolerance(op, T::DATA_TYPE),
            Numerics::Card => card_tolerance(op, T::DATA_TYPE),
        };
        self.case(op, case.into(), tolerance, || {
            let dtype = Some(T::DATA_TYPE);
            match self.run(&body).and_then(|tensor| tensor.to_vector::<f32>()) {
                Err(error) => Outcome { dtype, failure: Some(error.to_string()), ..Outcome::default() },
                Ok(got) => Outcome {
                    dtype,
                    difference: Some(Difference::between(&got, wanted)),
                    max_ulp: Some(ulps(&got, wanted, T::DATA_TYPE)),
                    failure: tolerance.failure(&got, wanted),
                },
            }
        });
    }

    /// Runs a case that has no values to compare; `failure` says what is wrong.
    fn note(&self, op: &'static str, case: impl Into<String>, failure: impl FnOnce() -> Option<String>) {
        self.case(op, case.into(), Tolerance::EXACT, || Outcome { failure: failure(), ..Outcome::default() });
    }

    fn case(&self, op: &'static str, case: String, tolerance: Tolerance, outcome: impl FnOnce() -> Outcome) {
        let index = self.seen.replace_with(|seen| *seen + 1);
        if index < self.first {
            return;
        }
        if let Some(watcher) = self.watcher {
            watcher.starts(index, op, &case);
        }
        let Outcome { dtype, difference, max_ulp, failure } = outcome();
        let result = CaseResult { op, case, mode: self.mode, dtype, difference, max_ulp, tolerance, failure };
        if let Some(watcher) = self.watcher {
            watcher.ends(index, &result);
        }
        self.results.borrow_mut().push(result);
    }
}

type Cases<D> = fn(&Bench<'_, D>) -> Result<()>;

/// Ops and their cases.
fn ops<D: Device>() -> [(&'static str, Cases<D>); 19] {
    [
        ("linear", matmul::linear),
        ("linear", matmul::fused),
        ("linear", matmul::ones_and_outliers),
        ("matmul", matmul::matmul),
        ("layer_norm", norm::layer_norm),
        ("rms_norm", norm::rms_norm),
        ("softmax", attention::softmax),
        ("scaled_dot_product_attention", attention::plain),
        ("scaled_dot_product_attention", attention::masked),
        ("scaled_dot_product_attention", attention::extremes),
        ("rotary_embedding", attention::rotary),
        ("gelu", eltwise::gelu),
        ("silu", eltwise::unary),
        ("add", eltwise::binary),
        ("multiply", eltwise::gated),
        ("split_query_key_value_and_split_heads", heads::split),
        ("concat", movement::concat_and_slice),
        ("reshape", movement::reshape_and_permute),
        ("typecast", movement::typecast_and_embedding),
    ]
}

/// Runs every case.
pub fn run<D: Device>(device: &D, mode: Mode) -> Vec<CaseResult> {
    run_where(device, mode, |_| true)
}

/// Runs the cases of one group, by the name of its op.
pub fn run_op<D: Device>(device: &D, mode: Mode, op: &str) -> Vec<CaseResult> {
    run_where(device, mode, |name| name == op)
}

/// How many groups of cases there are.
pub fn groups<D: Device>() -> usize {
    ops::<D>().len()
}

/// Runs the cases of group number `group` from number `first` on, and tells `watcher` of each. On a device that may end
/// the process this is how to go on after the case that did.
pub fn run_group<D: Device>(
    device: &D,
    mode: Mode,
    group: usize,
    first: usize,
    watcher: &dyn Watcher,
) -> Vec<CaseResult> {
    let all = ops::<D>();
    all.get(group)
        .map_or_else(Vec::new, |&(op, cases)| run_cases(device, mode, op, cases, first, Some(watcher)))
}

fn run_where<D: Device>(device: &D, mode: Mode, wanted: impl Fn(&str) -> bool) -> Vec<CaseResult> {
    let groups = ops::<D>().into_iter().filter(|(op, _)| wanted(op));
    groups.flat_map(|(op, cases)| run_cases(device, mode, op, cases, 0, None)).collect()
}

fn run_cases<D: Device>(
    device: &D,
    mode: Mode,
    op: &'static str,
    cases: Cases<D>,
    first: usize,
    watcher: Option<&dyn Watcher>,
) -> Vec<CaseResult> {
    let (seen, results) = (RefCell::new(0), RefCell::default());
    let bench = Bench { device, mode, first, seen, watcher, results };
    if let Err(error) = cases(&bench) {
        bench.note(op, "making operands", || Some(error.to_string()));
    }
    bench.results.into_inner()
}
