//! Multi-head attention on token-major matrices.

use ndarray::linalg::general_mat_mul;
use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis, Slice};

/// How a projection's width is divided into heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Query heads.
    pub(crate) query: usize,
    /// Key and value heads; each serves `query / key_value` consecutive query heads.
    pub(crate) key_value: usize,
    /// Width of one head.
    pub(crate) dim: usize,
}

impl Heads {
    /// As many key and value heads as query heads.
    pub(crate) fn multi_head(heads: usize, dim: usize) -> Self {
        Self { query: heads, key_value: heads, dim }
    }

    /// Width of the queries.
    pub(crate) fn query_dim(self) -> usize {
        self.query * self.dim
    }

    /// Width of the keys, and of the values.
    pub(crate) fn key_value_dim(self) -> usize {
        self.key_value * self.dim
    }
}

/// Which keys a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// All.
    None,
    /// Those up to its own position.
    Causal,
}

/// `softmax(q @ k^T / sqrt(dim)) @ v` per head: `q [m, query x dim]`, `k` and `v` `[s, key_value x dim]` to
/// `[m, query x dim]`.
pub(crate) fn attention(
    q: &ArrayRef2<f32>,
    k: &ArrayRef2<f32>,
    v: &ArrayRef2<f32>,
    heads: Heads,
    mask: Mask,
) -> Array2<f32> {
    let scale = 1.0 / (heads.dim as f32).sqrt();
    let queries_per_key = heads.query / heads.key_value;
    let mut out = Array2::zeros(q.raw_dim());
    out.axis_chunks_iter_mut(Axis(1), heads.dim).into_par_iter().enumerate().for_each(|(head, mut out)| {
        let q = columns(q, head, heads.dim);
        let k = columns(k, head / queries_per_key, heads.dim);
        let v = columns(v, head / queries_per_key, heads.dim);
        let mut weights = Array2::zeros((q.nrows(), k.nrows()));
        general_mat_mul(scale, &q, &k.t(), 0.0, &mut weights);
        for (position, mut row) in weights.rows_mut().into_iter().enumerate() {
            if mask == Mask::Causal {
                row.iter_mut().skip(position + 1).for_each(|x| *x = f32::NEG_INFINITY);
            }
            softmax(&mut row);
        }
        general_mat_mul(1.0, &weights, &v, 0.0, &mut out);
    });
    out
}

/// The columns of `head` in `x [rows, heads x dim]`.
fn columns(x: &ArrayRef2<f32>, head: usize, dim: usize) -> ArrayView2<'_, f32> {
    x.slice_axis(Axis(1), Slice::from(head * dim..(head + 1) * dim))
}

fn softmax(row: &mut ArrayRef1<f32>) {
    let max = max(row);
    row.mapv_inplace(|x| (x - max).exp());
    let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
    row.mapv_inplace(|x| (f64::from(x) / sum) as f32);
}

fn max(row: &ArrayRef1<f32>) -> f32 {
    row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::{Array1, array};

    use super::*;

    #[test]
    fn softmax_sums_to_one_and_does_not_overflow() {
        let mut row = Array1::from_vec(vec![1000.0, 1000.0, f32::NEG_INFINITY]);
        softmax(&mut row);
        assert_eq!(row, array![0.5, 0.5, 0.0]);
    }

    #[test]
    fn the_first_causal_query_sees_only_the_first_key() {
        let q = array![[1.0, 0.0], [1.0, 0.0]];
        let k = array![[0.0, 0.0], [0.0, 0.0]];
        let v = array![[1.0, 2.0], [3.0, 4.0]];
        let heads = Heads::multi_head(1, 2);
        let causal = attention(&q, &k, &v, heads, Mask::Causal);
        assert_abs_diff_eq!(causal, array![[1.0, 2.0], [2.0, 3.0]], epsilon = 1e-6);
        let full = attention(&q, &k, &v, heads, Mask::None);
        assert_abs_diff_eq!(full, array![[2.0, 3.0], [2.0, 3.0]], epsilon = 1e-6);
    }

    #[test]
    fn consecutive_query_heads_share_a_key_value_head() {
        let heads = Heads { query: 4, key_value: 2, dim: 1 };
        let q = array![[0.0, 0.0, 0.0, 0.0]];
        let k = array![[0.0, 0.0]];
        let v = array![[5.0, 7.0]];
        let got = attention(&q, &k, &v, heads, Mask::None);
        assert_eq!(got, array![[5.0, 5.0, 7.0, 7.0]]);
    }
}
