//! Comparison figures (PCC, max abs, relative rms), computed in f64, and the gates that they must pass.

/// How far a result is from a reference.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// Pearson's correlation coefficient; `None` when either side is constant, where it is undefined.
    pub pcc: Option<f64>,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Root mean square of the difference over that of the reference; 0 where both are zero everywhere.
    pub rel_rms: f64,
    /// Elements of the reference.
    pub elements: usize,
    /// Elements of the result.
    pub got_elements: usize,
    /// Positions at which either side is NaN or infinite.
    pub nonfinite: usize,
    /// Whether all elements of the reference are equal.
    pub want_constant: bool,
}

/// What a comparison must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Least correlation, unless the reference is constant.
    pub min_pcc: f64,
    /// Largest absolute difference; infinite where only the correlation counts.
    pub max_abs: f64,
}

/// Compares `got` with the reference `want`, element by element.
///
/// Never fails: sides of unequal length or with NaN or infinite values compare as no correlation and infinite
/// differences, which no [`Gate`] passes.
///
/// ```
/// use gr00t_host::metrics::{Gate, compare};
///
/// let comparison = compare(&[1.0, 2.0, 3.5], &[1.0, 2.0, 3.0]);
/// assert_eq!(comparison.max_abs, 0.5);
/// assert!(comparison.passes(&Gate { min_pcc: 0.98, max_abs: 0.5 }));
/// assert!(!compare(&[f32::NAN], &[1.0]).passes(&Gate { min_pcc: 0.0, max_abs: f64::INFINITY }));
/// ```
pub fn compare(got: &[f32], want: &[f32]) -> Comparison {
    let nonfinite = if got.len() == want.len() {
        pairs(got, want).filter(|(g, w)| !(g.is_finite() && w.is_finite())).count()
    } else {
        got.iter().chain(want).filter(|value| !value.is_finite()).count()
    };
    let comparable = got.len() == want.len() && nonfinite == 0;
    Comparison {
        pcc: if comparable { pcc(got, want) } else { None },
        max_abs: if comparable { max_abs(got, want) } else { f64::INFINITY },
        rel_rms: if comparable { rel_rms(got, want) } else { f64::INFINITY },
        elements: want.len(),
        got_elements: got.len(),
        nonfinite,
        want_constant: is_constant(want),
    }
}

impl Comparison {
    /// Whether the result is good enough. The largest difference must be within the gate, and the correlation must
    /// reach it. Against a constant reference the difference decides alone and must have a finite bound; a constant
    /// result for a reference that is not constant fails, and so does a comparison of nothing.
    pub fn passes(&self, gate: &Gate) -> bool {
        let comparable = self.elements > 0 && self.got_elements == self.elements && self.nonfinite == 0;
        let correlated = match self.pcc {
            Some(pcc) => pcc >= gate.min_pcc,
            None => self.want_constant && gate.max_abs.is_finite(),
        };
        comparable && correlated && self.max_abs <= gate.max_abs
    }
}

fn pairs(got: &[f32], want: &[f32]) -> impl Iterator<Item = (f64, f64)> {
    got.iter().zip(want).map(|(g, w)| (f64::from(*g), f64::from(*w)))
}

fn is_constant(values: &[f32]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// Two passes: means first, then centred sums, so that a large offset costs no digits.
fn pcc(got: &[f32], want: &[f32]) -> Option<f64> {
    if is_constant(got) || is_constant(want) {
        return None;
    }
    let count = want.len() as f64;
    let mean = |values: &[f32]| values.iter().copied().map(f64::from).sum::<f64>() / count;
    let (got_mean, want_mean) = (mean(got), mean(want));
    let (mut covariance, mut got_variance, mut want_variance) = (0.0, 0.0, 0.0);
    for (g, w) in pairs(got, want) {
        let (g, w) = (g - got_mean, w - want_mean);
        covariance += g * w;
        got_variance += g * g;
        want_variance += w * w;
    }
    Some((covariance / (got_variance.sqrt() * want_variance.sqrt())).clamp(-1.0, 1.0))
}

fn max_abs(got: &[f32], want: &[f32]) -> f64 {
    pairs(got, want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max)
}

fn rel_rms(got: &[f32], want: &[f32]) -> f64 {
    let (mut difference, mut reference) = (0.0_f64, 0.0_f64);
    for (g, w) in pairs(got, want) {
        difference += (g - w) * (g - w);
        reference += w * w;
    }
    if difference == 0.0 { 0.0 } else { (difference / reference).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::{Gate, compare};

    const LOOSE: Gate = Gate { min_pcc: -1.0, max_abs: f64::INFINITY };

    #[test]
    fn figures_of_a_small_case_are_those_computed_by_hand() {
        // means 2, centred (-1, 0, 1) and (-1, 1, 0): covariance 1, variances 2 and 2
        let comparison = compare(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]);
        assert!((comparison.pcc.expect("not constant") - 0.5).abs() < 1e-15);
        assert_eq!(comparison.max_abs, 1.0);
        assert!((comparison.rel_rms - (2.0_f64 / 14.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn equal_sides_correlate_fully_and_opposite_ones_inversely() {
        let values: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin()).collect();
        let opposite: Vec<f32> = values.iter().map(|v| -v).collect();
        let pcc = |got: &[f32]| compare(got, &values).pcc.expect("not constant");
        assert!((pcc(&values) - 1.0).abs() < 1e-14 && (pcc(&opposite) + 1.0).abs() < 1e-14);
        assert!(compare(&values, &values).passes(&Gate { min_pcc: 0.999_999_999, max_abs: 0.0 }));
    }

    #[test]
    fn a_large_offset_costs_no_digits() {
        // differences of 1 on a level of 2^23: a one-pass sum of squares would lose them
        let want: Vec<f32> = (0..4096).map(|i| 8_388_608.0 + (i % 2) as f32).collect();
        let got: Vec<f32> = (0..4096).map(|i| 8_388_608.0 + (i / 2 % 2) as f32).collect();
        assert!(compare(&got, &want).pcc.expect("not constant").abs() < 1e-12);
    }

    #[test]
    fn constant_reference_is_judged_by_the_largest_difference_alone() {
        let comparison = compare(&[0.1, 0.1001], &[0.1, 0.1]);
        assert_eq!(comparison.pcc, None);
        assert!(comparison.passes(&Gate { min_pcc: 0.99, max_abs: 2e-4 }));
        assert!(!comparison.passes(&Gate { min_pcc: 0.99, max_abs: 5e-5 }));
        assert!(!comparison.passes(&LOOSE), "nothing would be checked");
    }

    #[test]
    fn constant_result_for_a_varying_reference_fails() {
        let comparison = compare(&[0.0, 0.0], &[1e-6, -1e-6]);
        assert_eq!((comparison.pcc, comparison.want_constant), (None, false));
        assert!(!comparison.passes(&Gate { min_pcc: 0.99, max_abs: 1.0 }));
    }

    #[test]
    fn nan_infinity_unequal_lengths_and_nothing_fail_the_loosest_gate() {
        for (got, want) in [
            (&[f32::NAN, 1.0][..], &[0.0, 1.0][..]),
            (&[f32::INFINITY, 1.0], &[f32::INFINITY, 1.0]),
            (&[0.0, 1.0], &[0.0, f32::NAN]),
            (&[0.0, 1.0], &[0.0, 1.0, 2.0]),
            (&[], &[]),
        ] {
            let comparison = compare(got, want);
            assert!(!comparison.passes(&LOOSE), "{got:?} {want:?}");
            assert!(!comparison.passes(&Gate { min_pcc: -1.0, max_abs: 1e30 }), "{got:?} {want:?}");
        }
        assert_eq!(compare(&[f32::NAN, 1.0], &[0.0, f32::NAN]).nonfinite, 2);
        assert!(!compare(&[1.0, 2.0], &[1.0, 2.0]).passes(&Gate { min_pcc: f64::NAN, max_abs: 1.0 }));
    }

    #[test]
    fn extreme_values_neither_overflow_nor_vanish() {
        for scale in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            let values = [0.0, scale, 0.0, scale];
            let comparison = compare(&values, &values);
            assert!((comparison.pcc.expect("not constant") - 1.0).abs() < 1e-14, "{scale}");
            assert_eq!((comparison.max_abs, comparison.rel_rms), (0.0, 0.0));
        }
    }
}
