//! The gates of `verify`, on the figures of [`gr00t_host::metrics`].

use gr00t_host::metrics::{self, compare};

use super::report::{Row, Verdict};

/// Least correlation of a stage with NVIDIA's fp32 result.
const STAGE_PCC: f64 = 0.9999999;
/// Largest difference of a stage, as a share of its largest expected value. Correlation alone sees neither a wrong
/// scale nor one wrong element among many.
const STAGE_MAX_ABS: f64 = 1e-4;

/// How far values may be off that go through sines, cosines or arc tangents, as a share of their size (at least 1):
/// torch takes these from vector libraries that round some of them to the other neighbour, and a rotation is several
/// of them in a row.
const LIBM_F32: f64 = 1e-6;
const LIBM_F64: f64 = 1e-14;

/// How strictly a run is judged: what it may cost to be a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Grading {
    /// The fp32 reference: every stage counts.
    Reference,
    /// A device with narrow weights: correlation of what leaves each part.
    Device {
        /// Least correlation.
        min_pcc: f64,
    },
}

/// What a row must satisfy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Gate {
    /// An intermediate tensor: [`STAGE_PCC`] where the expectation is not constant, and [`STAGE_MAX_ABS`].
    Stage,
    /// A largest difference, besides [`STAGE_PCC`] where the expectation is not constant.
    MaxAbs(f64),
    /// A largest difference; correlation is shown and not judged.
    MaxAbsAlone(f64),
    /// A least correlation, where the expectation is not constant.
    Pcc(f64),
    /// Nothing but finite values of the right number.
    Shown,
}

/// How exactly values must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// To the bit, but for the sign of zero.
    Equal,
    /// Equal but for the last places of transcendental functions in single precision.
    LibmF32,
    /// The same in double precision.
    LibmF64,
}

/// Counts the values of `got` that equal `expected`; all must, as `exactness` says.
pub(crate) fn judge_equal(name: &str, got: &[f64], expected: &[f64], exactness: Exactness) -> Row {
    if got.len() != expected.len() {
        return Row::fail(name, format!("{} values, wanted {}", got.len(), expected.len()));
    }
    let equal = got.iter().zip(expected).filter(|(a, b)| a == b).count();
    let mut row = Row::equal(name, equal, expected.len());
    let share = match exactness {
        Exactness::Equal => return row,
        Exactness::LibmF32 => LIBM_F32,
        Exactness::LibmF64 => LIBM_F64,
    };
    // Written so that NaN is not near.
    let near = got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= share * b.abs().max(1.0));
    let largest = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if row.verdict == Verdict::Fail && near && !expected.is_empty() {
        row.verdict = Verdict::Pass;
        row.detail = format!("{}, the others within {share:.0e} (transcendental functions)", row.detail);
    }
    row.max_abs = Some(largest).filter(|v| v.is_finite());
    row
}

/// Compares `got` with `expected`.
pub(crate) fn judge(name: &str, got: &[f32], expected: &[f32], gate: Gate) -> Row {
    let figures = compare(got, expected);
    let largest = expected.iter().fold(0.0, |m: f64, v| m.max(f64::from(v.abs())));
    let max_abs = match gate {
        Gate::Stage => STAGE_MAX_ABS * largest,
        Gate::MaxAbs(most) | Gate::MaxAbsAlone(most) => most,
        // Infinite differences never pass, so this asks for finite values alone.
        Gate::Pcc(_) | Gate::Shown => f64::MAX,
    };
    let passed = match gate {
        Gate::Stage | Gate::MaxAbs(_) => figures.passes(&metrics::Gate { min_pcc: STAGE_PCC, max_abs }),
        // Infinite where the sides cannot be compared.
        Gate::MaxAbsAlone(_) | Gate::Shown => figures.elements > 0 && figures.max_abs <= max_abs,
        Gate::Pcc(min_pcc) => figures.passes(&metrics::Gate { min_pcc, max_abs }),
    };
    let mut notes = Vec::new();
    if figures.got_elements != figures.elements {
        notes.push(format!("{} values, wanted {}", figures.got_elements, figures.elements));
    }
    if figures.nonfinite > 0 {
        notes.push(format!("{} values are not finite", figures.nonfinite));
    }
    if figures.want_constant {
        notes.push("constant".into());
    }
    if !passed {
        notes.push(match gate {
            Gate::MaxAbsAlone(_) => format!("wanted max abs {max_abs:.2e}"),
            Gate::Pcc(min_pcc) => format!("wanted PCC {min_pcc}"),
            Gate::Shown => "wanted finite values".into(),
            Gate::Stage | Gate::MaxAbs(_) => format!("wanted PCC {STAGE_PCC}, max abs {max_abs:.2e}"),
        });
    }
    Row {
        name: name.into(),
        verdict: match gate {
            Gate::Shown if passed => Verdict::Info,
            _ if passed => Verdict::Pass,
            _ => Verdict::Fail,
        },
        pcc: figures.pcc,
        max_abs: Some(figures.max_abs).filter(|v| v.is_finite()),
        rel_rms: Some(figures.rel_rms).filter(|v| v.is_finite()),
        detail: notes.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: [f32; 4] = [1.0, -2.0, 3.0, 10.0];

    #[test]
    fn one_wrong_element_fails_a_stage() {
        assert_eq!(judge("x", &STAGE, &STAGE, Gate::Stage).verdict, Verdict::Pass);
        let mut wrong = STAGE;
        wrong[1] += 2e-3;
        assert_eq!(judge("x", &wrong, &STAGE, Gate::Stage).verdict, Verdict::Fail);
    }

    #[test]
    fn a_wrong_scale_fails_although_it_correlates() {
        let scaled = STAGE.map(|v| v * 1.01);
        let row = judge("x", &scaled, &STAGE, Gate::Stage);
        assert!(row.pcc.is_some_and(|pcc| pcc > 0.99999999), "{row:?}");
        assert_eq!(row.verdict, Verdict::Fail);
    }

    #[test]
    fn a_constant_is_judged_by_its_largest_difference_alone() {
        assert_eq!(judge("x", &[0.5; 3], &[0.5; 3], Gate::MaxAbs(1e-4)).verdict, Verdict::Pass);
        assert_eq!(judge("x", &[0.5, 0.5, 0.6], &[0.5; 3], Gate::MaxAbs(1e-4)).verdict, Verdict::Fail);
        assert_eq!(judge("x", &[0.5; 3], &[0.5; 3], Gate::MaxAbsAlone(0.0)).verdict, Verdict::Pass);
    }

    #[test]
    fn the_last_place_of_a_sine_may_differ_and_nothing_else() {
        let near = 0.5 + 1e-7;
        assert_eq!(judge_equal("x", &[near], &[0.5], Exactness::LibmF32).verdict, Verdict::Pass);
        assert_eq!(judge_equal("x", &[near], &[0.5], Exactness::LibmF64).verdict, Verdict::Fail);
        assert_eq!(judge_equal("x", &[near], &[0.5], Exactness::Equal).verdict, Verdict::Fail);
        assert_eq!(judge_equal("x", &[0.501], &[0.5], Exactness::LibmF32).verdict, Verdict::Fail);
        assert_eq!(judge_equal("x", &[f64::NAN], &[0.5], Exactness::LibmF32).verdict, Verdict::Fail);
        assert_eq!(judge_equal("x", &[], &[], Exactness::LibmF32).verdict, Verdict::Fail);
    }

    #[test]
    fn nan_and_another_length_fail_every_gate() {
        for gate in [Gate::Stage, Gate::MaxAbs(1.0), Gate::MaxAbsAlone(1.0)] {
            assert_eq!(judge("x", &[f32::NAN, 1.0], &[0.5, 1.0], gate).verdict, Verdict::Fail);
            assert_eq!(judge("x", &[0.5], &[0.5, 1.0], gate).verdict, Verdict::Fail);
            assert_eq!(judge("x", &[], &[], gate).verdict, Verdict::Fail);
        }
    }
}
