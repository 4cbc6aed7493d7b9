//! Filter taps of `torch.nn.functional.interpolate(mode="bilinear", antialias=True, align_corners=False)`
//! along one axis: a triangle filter that widens when the axis shrinks, weights normalised per output.

use std::ops::Range;

/// Taps of every output of one axis. Each output has the same number of taps, so that the passes have no
/// data-dependent loop: where the filter is narrower the remaining weights are 0, which adds exactly nothing.
pub(super) struct Taps {
    starts: Vec<usize>,
    weights: Vec<f32>,
    per_output: usize,
}

impl Taps {
    /// Taps from `n_in` samples to `n_out`; both must be at least 1 and below 2^24.
    ///
    /// Sizes and sums are float32 as in torch's `_compute_indices_min_size_weights_aa`, whose 0.5 is a double;
    /// any other rounding moves results across integers.
    pub(super) fn new(n_in: usize, n_out: usize) -> Self {
        let scale = n_in as f32 / n_out as f32;
        let support = scale.max(1.0);
        let inverse = 1.0 / support;
        let centre = |output: usize| scale * (output as f32 + 0.5);
        let spans: Vec<Range<usize>> = (0..n_out).map(|output| span(n_in, centre(output), support)).collect();

        let per_output = spans.iter().map(Range::len).max().unwrap_or(1);
        let mut starts = Vec::with_capacity(n_out);
        let mut weights = vec![0.0; n_out * per_output];
        for ((output, span), padded) in
            spans.into_iter().enumerate().zip(weights.chunks_exact_mut(per_output))
        {
            // At the far border the window moves back and the padding is in front.
            let first = span.start.min(n_in - per_output);
            fill(&mut padded[span.start - first..span.end - first], span.start, centre(output), inverse);
            starts.push(first);
        }
        Self { starts, weights, per_output }
    }

    /// Number of taps of every output.
    pub(super) fn per_output(&self) -> usize {
        self.per_output
    }

    /// First sample and weights of each output, in order; first samples never decrease.
    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.starts.iter().copied().zip(self.weights.chunks_exact(self.per_output))
    }
}

/// Samples that the filter of the output centred at `centre` covers.
fn span(n_in: usize, centre: f32, support: f32) -> Range<usize> {
    // `as` truncates and saturates: a negative start becomes 0.
    let start = ((f64::from(centre - support) + 0.5) as usize).min(n_in - 1);
    let end = ((f64::from(centre + support) + 0.5) as usize).clamp(start + 1, n_in);
    start..end
}

/// Fills in the normalised weights of the samples from `start` on.
fn fill(weights: &mut [f32], start: usize, centre: f32, inverse: f32) {
    let mut sum = 0.0;
    for (offset, weight) in weights.iter_mut().enumerate() {
        let distance = (f64::from((start + offset) as f32 - centre) + 0.5) * f64::from(inverse);
        *weight = (1.0 - (distance as f32).abs()).max(0.0);
        sum += *weight;
    }
    for weight in weights {
        *weight /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::Taps;

    #[test]
    fn same_size_is_identity() {
        for (index, (start, weights)) in Taps::new(5, 5).iter().enumerate() {
            for (offset, weight) in weights.iter().enumerate() {
                assert_eq!(*weight, if start + offset == index { 1.0 } else { 0.0 });
            }
        }
    }

    #[test]
    fn weights_sum_to_one_and_windows_stay_inside() {
        for (n_in, n_out) in [(1, 224), (2, 224), (243, 224), (456, 224), (608, 224), (8192, 224), (7, 1)] {
            let taps = Taps::new(n_in, n_out);
            assert_eq!(taps.iter().count(), n_out);
            let mut previous = 0;
            for (start, weights) in taps.iter() {
                assert!(start >= previous && start + weights.len() <= n_in, "{n_in} -> {n_out}");
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{n_in} -> {n_out}");
                previous = start;
            }
        }
    }
}
