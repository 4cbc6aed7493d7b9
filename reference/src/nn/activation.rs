//! Activation functions.

use ndarray::Array2;

/// `torch.nn.functional.gelu(x, approximate="tanh")`.
pub(crate) fn gelu_tanh(mut x: Array2<f32>) -> Array2<f32> {
    /// sqrt(2 / pi).
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    /// Coefficient of the cubic term (Hendrycks and Gimpel, 2016).
    const CUBIC: f32 = 0.044_715;
    x.par_mapv_inplace(|x| 0.5 * x * (1.0 + (SQRT_2_OVER_PI * (x + CUBIC * x * x * x)).tanh()));
    x
}

/// `x * sigmoid(x)`, also called swish.
pub(crate) fn silu(mut x: Array2<f32>) -> Array2<f32> {
    x.par_mapv_inplace(|x| x / (1.0 + (-x).exp()));
    x
}

/// `max(x, 0)`.
pub(crate) fn relu(mut x: Array2<f32>) -> Array2<f32> {
    // Not `max`, which turns NaN into 0 and so hides a broken weight from everything after it.
    x.mapv_inplace(|x| if x < 0.0 { 0.0 } else { x });
    x
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    #[test]
    fn activations_equal_their_closed_forms() {
        // Values of the formulas in double precision.
        assert_abs_diff_eq!(
            gelu_tanh(array![[-1.0, 0.0, 0.5, 3.0]]),
            array![[-0.158_808, 0.0, 0.345_714, 2.996_363]],
            epsilon = 1e-6
        );
        assert_abs_diff_eq!(
            silu(array![[-2.0, 0.0, 1.0]]),
            array![[-0.238_405_84, 0.0, 0.731_058_6]],
            epsilon = 1e-6
        );
        assert_eq!(relu(array![[-2.0, 0.0, 1.5]]), array![[0.0, 0.0, 1.5]]);
    }

    #[test]
    fn silu_of_large_negative_numbers_is_zero() {
        assert_eq!(silu(array![[-200.0]]), array![[0.0]]);
    }

    #[test]
    fn not_a_number_stays_one() {
        for activation in [gelu_tanh, silu, relu] {
            assert!(activation(array![[f32::NAN]])[[0, 0]].is_nan());
        }
    }
}
