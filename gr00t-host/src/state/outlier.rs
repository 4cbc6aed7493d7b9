//! How far values lie outside the range that the training data had: the usual sign of swapped keys or of degrees where
//! radians are expected, which upstream lets pass in silence.

/// A state value further outside than this many ranges is warned of.
pub(crate) const FAR_RANGES: f64 = 3.0;
/// A dimension's range counts as at least this share of its key's widest, so that a joint that hardly moved in the
/// training data isn't warned of for noise.
const LEAST_SHARE: f64 = 0.1;
/// Rounding of an action at the edge of its range is this share of the range at most.
const EDGE_TOLERANCE: f64 = 1e-5;

/// Smallest and largest value per dimension of one key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranges {
    bounds: Vec<(f64, f64)>,
    widest: f64,
}

impl Ranges {
    /// `None` where the statistics aren't ranges (not finite, or the wrong way round).
    pub(crate) fn new(min: &[f64], max: &[f64]) -> Option<Self> {
        let bounds: Vec<(f64, f64)> = min.iter().copied().zip(max.iter().copied()).collect();
        let usable = bounds.iter().all(|&(lo, hi)| lo.is_finite() && hi.is_finite() && lo <= hi);
        let widest = bounds.iter().map(|&(lo, hi)| hi - lo).fold(0.0, f64::max);
        (usable && min.len() == max.len()).then_some(Self { bounds, widest })
    }

    /// How many ranges `value` lies outside dimension `index`; 0 inside, and where no range is known.
    fn ranges_outside(&self, index: usize, value: f64) -> f64 {
        let Some(&(lo, hi)) = self.bounds.get(index) else { return 0.0 };
        let range = (hi - lo).max(self.widest * LEAST_SHARE);
        let outside = (lo - value).max(value - hi);
        if outside > 0.0 && range > 0.0 { outside / range } else { 0.0 }
    }

    /// A warning if any of `values` lies more than [`FAR_RANGES`] outside.
    pub(crate) fn warning(&self, key: &str, values: &[f64]) -> Option<String> {
        let outside: Vec<(usize, f64)> =
            values.iter().enumerate().map(|(i, &v)| (i, self.ranges_outside(i, v))).collect();
        let far = outside.iter().filter(|&&(_, ranges)| ranges > FAR_RANGES).count();
        let &(worst, _) = outside.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| far > 0)?;
        let (value, &(lo, hi)) = (values.get(worst)?, self.bounds.get(worst)?);
        let as_radians: Vec<f64> = values.iter().map(|v| v.to_radians()).collect();
        let fits_as_radians = as_radians.iter().enumerate().all(|(i, &v)| self.ranges_outside(i, v) <= 1.0);
        let degrees = if fits_as_radians && value.abs() > std::f64::consts::TAU {
            "; they fit if they are degrees, radians are expected"
        } else {
            ""
        };
        Some(format!(
            "state {key}: {far} of {} values lie more than {FAR_RANGES} ranges outside the statistics, the furthest is \
             [{worst}] = {value}, statistics [{lo}, {hi}]{degrees}",
            values.len()
        ))
    }

    /// Whether an action's value lies outside by more than rounding.
    pub(crate) fn is_outside(&self, index: usize, value: f64) -> bool {
        self.bounds.get(index).is_some_and(|&(lo, hi)| {
            let tolerance = (hi - lo).max(lo.abs()).max(hi.abs()) * EDGE_TOLERANCE;
            value < lo - tolerance || value > hi + tolerance
        })
    }

    /// `value` moved into dimension `index`'s range, in single precision.
    pub(crate) fn clip(&self, index: usize, value: f32) -> f32 {
        self.bounds.get(index).map_or(value, |&(lo, hi)| value.max(lo as f32).min(hi as f32))
    }
}
