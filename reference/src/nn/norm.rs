//! `LayerNorm` and `RMSNorm` over the last axis; statistics in f64.

use gr00t_host::Weights;
use ndarray::{Array1, Array2, ArrayRef1};

use crate::Result;

/// `torch.nn.LayerNorm`, with or without affine parameters.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    affine: Option<(Array1<f32>, Array1<f32>)>,
    eps: f64,
}

impl LayerNorm {
    /// With learned weight and bias.
    pub(crate) fn new(dim: usize, eps: f64, weights: &Weights) -> Result<Self> {
        let weight = Array1::from_vec(weights.f32("weight", &[dim])?);
        let bias = Array1::from_vec(weights.f32("bias", &[dim])?);
        Ok(Self { affine: Some((weight, bias)), eps })
    }

    /// `elementwise_affine=False`.
    pub(crate) fn no_affine(eps: f64) -> Self {
        Self { affine: None, eps }
    }

    /// `(x - mean) / sqrt(variance + eps) * weight + bias`, row by row.
    pub(crate) fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        let mut out = x.clone();
        for mut row in out.rows_mut() {
            let mean = mean(&row, |x| x);
            let variance = self::mean(&row, |x| (x - mean).powi(2));
            let rstd = 1.0 / (variance + self.eps).sqrt();
            row.mapv_inplace(|x| ((f64::from(x) - mean) * rstd) as f32);
        }
        if let Some((weight, bias)) = &self.affine {
            out *= weight;
            out += bias;
        }
        out
    }
}

/// `Qwen3RMSNorm`.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Array1<f32>,
    eps: f64,
}

impl RmsNorm {
    pub(crate) fn new(dim: usize, eps: f64, weights: &Weights) -> Result<Self> {
        Ok(Self { weight: Array1::from_vec(weights.f32("weight", &[dim])?), eps })
    }

    /// `x / sqrt(mean(x^2) + eps) * weight`, row by row.
    pub(crate) fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        let mut out = x.clone();
        for mut row in out.rows_mut() {
            let rms = (mean(&row, |x| x * x) + self.eps).sqrt();
            row.mapv_inplace(|x| (f64::from(x) / rms) as f32);
        }
        out *= &self.weight;
        out
    }
}

fn mean(row: &ArrayRef1<f32>, of: impl Fn(f64) -> f64) -> f64 {
    row.iter().map(|&x| of(f64::from(x))).sum::<f64>() / row.len() as f64
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    #[test]
    fn layer_norm_removes_mean_and_scale() {
        let got = LayerNorm::no_affine(0.0).forward(&array![[1001.0, 1003.0]]);
        assert_abs_diff_eq!(got, array![[-1.0, 1.0]], epsilon = 1e-6);
    }

    #[test]
    fn layer_norm_eps_is_inside_the_root() {
        let got = LayerNorm::no_affine(3.0).forward(&array![[-1.0, 1.0]]);
        assert_abs_diff_eq!(got, array![[-0.5, 0.5]], epsilon = 1e-6);
    }

    #[test]
    fn rms_norm_keeps_the_mean() {
        let norm = RmsNorm { weight: array![1.0, 2.0], eps: 0.0 };
        assert_abs_diff_eq!(norm.forward(&array![[3.0, 3.0]]), array![[1.0, 2.0]], epsilon = 1e-6);
    }
}
