//! `torch.nn.Linear`, and the matrix product under everything.

use gr00t_host::Weights;
use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayRef2, Axis, linalg::general_mat_mul};

use crate::Result;

/// Output columns per parallel task: wide enough that packing the left side again costs little, narrow enough that
/// a 1152-wide output still keeps several threads busy. Fixed, so that the split never depends on the machine.
const COLUMNS_PER_TASK: usize = 128;

/// `a [m, k] @ b [k, n]`, split over columns of the result: each element is one sum, made by one thread.
pub(crate) fn matmul(a: &ArrayRef2<f32>, b: &ArrayRef2<f32>) -> Array2<f32> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    out.axis_chunks_iter_mut(Axis(1), COLUMNS_PER_TASK)
        .into_par_iter()
        .zip(b.axis_chunks_iter(Axis(1), COLUMNS_PER_TASK))
        .for_each(|(mut out, b)| general_mat_mul(1.0, a, &b, 0.0, &mut out));
    out
}

/// `x @ weight^T + bias`.
#[derive(Debug)]
pub(crate) struct Linear {
    /// `[out, in]`, as stored.
    pub(crate) weight: Array2<f32>,
    pub(crate) bias: Option<Array1<f32>>,
}

impl Linear {
    /// With bias.
    pub(crate) fn new(inputs: usize, outputs: usize, weights: &Weights) -> Result<Self> {
        let bias = Array1::from_vec(weights.f32("bias", &[outputs])?);
        Ok(Self { bias: Some(bias), ..Self::no_bias(inputs, outputs, weights)? })
    }

    /// Without bias.
    pub(crate) fn no_bias(inputs: usize, outputs: usize, weights: &Weights) -> Result<Self> {
        let weight = weights.f32("weight", &[outputs, inputs])?;
        Ok(Self { weight: Array2::from_shape_vec((outputs, inputs), weight)?, bias: None })
    }

    /// `x [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        let mut out = matmul(x, &self.weight.t());
        if let Some(bias) = &self.bias {
            out += bias;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matmul_is_the_same_on_one_and_on_three_threads() {
        let a = Array2::from_shape_fn((37, 300), |(i, j)| ((i * 31 + j * 17) % 101) as f32 / 50.0 - 1.0);
        let b = Array2::from_shape_fn((300, 700), |(i, j)| ((i * 13 + j * 29) % 97) as f32 / 48.0 - 1.0);
        let on = |threads| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| matmul(&a, &b))
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn matmul_equals_sums_in_f64() {
        let a = Array2::from_shape_fn((3, 200), |(i, j)| ((i * 31 + j * 17) % 101) as f32 / 50.0 - 1.0);
        let b = Array2::from_shape_fn((200, 130), |(i, j)| ((i * 13 + j * 29) % 97) as f32 / 48.0 - 1.0);
        let exact = a.mapv(f64::from).dot(&b.mapv(f64::from));
        approx::assert_abs_diff_eq!(matmul(&a, &b).mapv(f64::from), exact, epsilon = 1e-4);
    }
}
