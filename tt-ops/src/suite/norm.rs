//! Cases of `layer_norm` and `rms_norm`.

use super::Bench;
use super::data::{normal, rounded, wide};
use super::reference;
use crate::device::Device;
use crate::dtype::{Bfloat16, DataType, Float32};
use crate::error::Result;
use crate::ops::{self, LayerNorm, RmsNorm};
use crate::tensor::Tensor;

/// Rows that norms get wrong: far from 0 with little spread, one outlier as large as Qwen's sink tokens, constant,
/// tiny.
fn rows(width: usize) -> Vec<f32> {
    let base = normal(width as u64, 6 * width);
    let mut rows = base.clone();
    for (value, base) in rows[width..2 * width].iter_mut().zip(&base) {
        *value = 100.0 + 0.1 * base;
    }
    rows[2 * width + width / 3] = 1e3;
    rows[3 * width..4 * width].fill(2.5);
    for value in &mut rows[4 * width..5 * width] {
        *value *= 1e-4;
    }
    rows
}

pub(super) fn layer_norm<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    const EPSILON: f32 = 1e-5;
    for width in [1152, 1536, 2048, 40, 7] {
        let (x, weight, bias) = (rows(width), normal(1, width), normal(2, width));
        let (ones, zeros) = (vec![1.0; width], vec![0.0; width]);
        let wide_x: Tensor<_, Float32> = bench.tensor([2, 3, width], &x)?;
        let half_x: Tensor<_, Bfloat16> = bench.tensor([6, width], &x)?;
        let w: Tensor<_, Float32> = bench.tensor([width], &weight)?;
        let b: Tensor<_, Bfloat16> = bench.tensor([1, width], &bias)?;
        let epsilon = f64::from(EPSILON);
        let bias = rounded(&bias, DataType::Bfloat16, width);
        let wanted = reference::layer_norm(&wide(&x), &wide(&weight), &bias, epsilon);
        bench.check::<Float32>("layer_norm", format!("{width} float32, weight and bias"), &wanted, || {
            ops::layer_norm(&wide_x, LayerNorm::new(EPSILON).weight(&w).bias(&b))
        });
        let half = rounded(&x, DataType::Bfloat16, width);
        let wanted = reference::layer_norm(&half, &ones, &zeros, epsilon);
        bench.check::<Bfloat16>("layer_norm", format!("{width} bfloat16, plain"), &wanted, || {
            ops::layer_norm(&half_x, LayerNorm::new(EPSILON))
        });
        let wanted = reference::layer_norm(&half, &wide(&weight), &zeros, epsilon);
        bench.check::<Float32>("layer_norm", format!("{width} bfloat16 to float32, weight"), &wanted, || {
            ops::layer_norm(&half_x, LayerNorm::new(EPSILON).weight(&w))
        });
    }
    Ok(())
}

pub(super) fn rms_norm<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    const EPSILON: f32 = 1e-6;
    for width in [2048, 128, 40, 7] {
        let (x, weight) = (rows(width), normal(1, width));
        let wide_x: Tensor<_, Float32> = bench.tensor([1, 6, width], &x)?;
        let heads: Tensor<_, Bfloat16> = bench.tensor([1, 3, 2 * width], &x)?;
        let w: Tensor<_, Float32> = bench.tensor([width], &weight)?;
        let epsilon = f64::from(EPSILON);
        let wanted = reference::rms_norm(&wide(&x), &wide(&weight), epsilon);
        bench.check::<Float32>("rms_norm", format!("{width} float32"), &wanted, || {
            ops::rms_norm(&wide_x, RmsNorm::new(EPSILON).weight(&w))
        });
        // Per head, on the view that a head split makes: rows 0, 2, 4 are the first head's.
        let half = rounded(&x, DataType::Bfloat16, width);
        let by_head: Vec<f64> =
            [0, 2, 4, 1, 3, 5].iter().flat_map(|&r| half[r * width..(r + 1) * width].to_vec()).collect();
        let wanted = reference::rms_norm(&by_head, &wide(&weight), epsilon);
        bench.check::<Bfloat16>("rms_norm", format!("{width} bfloat16, per head"), &wanted, || {
            ops::rms_norm(&ops::split_heads(&heads, 2)?, RmsNorm::new(EPSILON).weight(&w))
        });
    }
    Ok(())
}
