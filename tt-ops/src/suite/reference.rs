//! What ops should give, in f64, written for reading.

/// `x [m, k] · w [k, n]`.
pub(super) fn matmul(x: &[f64], w: &[f64], k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; x.len() / k * n];
    for (row, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
        for (value, weights) in row.iter().zip(w.chunks_exact(n)) {
            for (out, weight) in out.iter_mut().zip(weights) {
                *out += value * weight;
            }
        }
    }
    out
}

/// Layer norm of rows as long as `weight`.
pub(super) fn layer_norm(x: &[f64], weight: &[f64], bias: &[f64], epsilon: f64) -> Vec<f64> {
    let n = weight.len() as f64;
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(weight.len()) {
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let scale = 1.0 / (variance + epsilon).sqrt();
        out.extend(row.iter().zip(weight).zip(bias).map(|((v, w), b)| (v - mean) * scale * w + b));
    }
    out
}

/// RMS norm of rows as long as `weight`.
pub(super) fn rms_norm(x: &[f64], weight: &[f64], epsilon: f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(weight.len()) {
        let mean = row.iter().map(|v| v * v).sum::<f64>() / weight.len() as f64;
        let scale = 1.0 / (mean + epsilon).sqrt();
        out.extend(row.iter().zip(weight).map(|(v, w)| v * scale * w));
    }
    out
}

/// Softmax of a row; zeros where nothing is finite.
pub(super) fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return vec![0.0; row.len()];
    }
    let exps: Vec<f64> = row.iter().map(|v| (v - largest).exp()).collect();
    let sum: f64 = exps.iter().sum();
    exps.iter().map(|e| e / sum).collect()
}

/// Extents of one attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) width: usize,
    pub(super) causal: bool,
}

/// `softmax(q kᵀ / sqrt(width) + mask) v`; `mask [queries, keys]` for every head.
pub(super) fn attention(a: Attention, q: &[f64], k: &[f64], v: &[f64], mask: Option<&[f64]>) -> Vec<f64> {
    let scale = 1.0 / (a.width as f64).sqrt();
    let mut out = Vec::with_capacity(q.len());
    for (index, query) in q.chunks_exact(a.width).enumerate() {
        let (batch, head, at) =
            (index / (a.heads * a.queries), index / a.queries % a.heads, index % a.queries);
        let kv = batch * a.kv_heads + head / (a.heads / a.kv_heads);
        let rows = kv * a.keys * a.width..(kv + 1) * a.keys * a.width;
        let scores: Vec<f64> = k[rows.clone()]
            .chunks_exact(a.width)
            .enumerate()
            .map(|(key, values)| {
                let score = query.iter().zip(values).map(|(x, y)| x * y).sum::<f64>() * scale;
                let masked = mask.map_or(0.0, |m| m[at * a.keys + key]);
                if a.causal && key > at { f64::NEG_INFINITY } else { score + masked }
            })
            .collect();
        let weights = softmax(&scores);
        let mut row = vec![0.0; a.width];
        for (weight, values) in weights.iter().zip(v[rows].chunks_exact(a.width)) {
            for (sum, value) in row.iter_mut().zip(values) {
                *sum += weight * value;
            }
        }
        out.extend(row);
    }
    out
}

/// GELU by tanh.
pub(super) fn gelu_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    // 1 + tanh loses everything in the negative tail; the logistic form does not.
    x / (1.0 + (-2.0 * inner).exp())
}

/// GELU by erf.
pub(super) fn gelu_erf(x: f64) -> f64 {
    x * 0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// `1 - erf`: the Taylor series near 0, Lentz's continued fraction in the tails.
fn erfc(x: f64) -> f64 {
    /// From here the continued fraction converges fast.
    const TAIL: f64 = 2.0;
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < TAIL {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - 2.0 / std::f64::consts::PI.sqrt() * sum;
    }
    let mut fraction = x;
    for n in (1..200).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    (-x * x).exp() / (fraction * std::f64::consts::PI.sqrt())
}

/// `x · sigmoid(x)`.
pub(super) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Abramowitz and Stegun, table 7.1.
    #[test]
    fn erfc_matches_the_table() {
        for (x, erf) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (1.9, 0.992_790_429_2)] {
            assert!((1.0 - erfc(x) - erf).abs() < 1e-10, "{x}");
            assert!((1.0 - erfc(-x) + erf).abs() < 1e-10, "-{x}");
        }
        assert!((erfc(2.0) - (1.0 - 0.995_322_265_0)).abs() < 1e-10);
    }
}
