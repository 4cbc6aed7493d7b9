//! Quantiles of measured values.

/// Ascending.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest of the ascending `values` that at least `share` of them do not exceed; 0 of none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).or(values.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.95, 0.99, 1.0].map(|share| quantile(&values, share)), [50.0, 95.0, 99.0, 100.0]);
        assert_eq!(quantile(&[3.0], 0.99), 3.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn one_slow_value_does_not_move_the_median() {
        let median = |values: &[f64]| quantile(&sorted(values.iter().copied()), 0.5);
        assert_eq!(median(&[900.0, 3.0]), 3.0);
        assert_eq!(median(&[900.0, 4.0, 3.0]), 4.0);
        assert_eq!(median(&[900.0]), 900.0);
    }
}
