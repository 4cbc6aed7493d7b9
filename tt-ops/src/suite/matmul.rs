//! Cases of `linear` and `matmul`.

use super::Bench;
use super::data::{normal, rounded, scaled, transposed, wide};
use super::reference;
use crate::device::Device;
use crate::dtype::{Bfloat16, DataType, Float32};
use crate::error::Result;
use crate::op::Activation;
use crate::ops::{self, Linear};
use crate::tensor::Tensor;
use crate::weight::Weight;

/// (rows, k, n): the model's odd extents, and what is smaller or just past a tile.
const SHAPES: [(usize, usize, usize); 8] = [
    (49, 1536, 96),
    (5, 588, 70),
    (33, 4304, 40),
    (1, 32, 32),
    (3, 7, 5),
    (64, 64, 33),
    (17, 100, 1),
    (296, 48, 65),
];

pub(super) fn linear<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for (index, (m, k, n)) in SHAPES.into_iter().enumerate() {
        let x = normal(index as u64, m * k);
        let w = scaled(100 + index as u64, k * n, 1.0 / (k as f32).sqrt());
        let tensor: Tensor<_, Bfloat16> = bench.tensor([1, m, k], &x)?;
        let x = rounded(&x, DataType::Bfloat16, k);
        for dtype in DataType::FLOATS {
            let wanted = reference::matmul(&x, &rounded(&w, dtype, n), k, n);
            let in_out = Weight::from_in_out(bench.device, k, n, dtype, &w[..])?;
            let out_in = Weight::from_out_in(bench.device, n, k, dtype, &transposed(&w, k)[..])?;
            let case = format!("{m}x{k}x{n} {dtype}");
            bench.check::<Float32>("linear", case.clone(), &wanted, || {
                ops::linear(&tensor, &in_out, Linear::new())
            });
            bench.check::<Bfloat16>("linear", format!("{case} transposed"), &wanted, || {
                ops::linear(&tensor, &out_in, Linear::new())
            });
        }
    }
    Ok(())
}

/// Bias, activation and residual, in mixed data types, with operands that are views.
pub(super) fn fused<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let (batch, m, k, n) = (2, 37, 144, 80);
    let x = normal(1, batch * m * k);
    let w = scaled(2, k * n, 1.0 / 12.0);
    let bias = normal(3, n);
    let residual = normal(4, batch * m * n);
    let tensor: Tensor<_, Bfloat16> = bench.tensor([batch, m, k], &x)?;
    let bias_tensor: Tensor<_, Float32> = bench.tensor([n], &bias)?;
    let bias_half: Tensor<_, Bfloat16> = bench.tensor([1, 1, n], &bias)?;
    let residual_wide: Tensor<_, Float32> = bench.tensor([batch, m, n], &residual)?;
    let residual_half: Tensor<_, Bfloat16> = bench.tensor([batch, m, n], &residual)?;
    let x = rounded(&x, DataType::Bfloat16, k);
    for dtype in [DataType::Bfloat16, DataType::Bfloat8B, DataType::Float32] {
        let weight = Weight::from_in_out(bench.device, k, n, dtype, &w[..])?;
        let sums = reference::matmul(&x, &rounded(&w, dtype, n), k, n);
        for (name, activation, function) in [
            ("gelu tanh", Some(Activation::GeluTanh), reference::gelu_tanh as fn(f64) -> f64),
            ("gelu erf", Some(Activation::GeluErf), reference::gelu_erf),
            ("silu", Some(Activation::Silu), reference::silu),
            ("relu", Some(Activation::Relu), |x| x.max(0.0)),
            ("no activation", None, |x| x),
        ] {
            let biased = |i: usize, bias: &[f64]| function(sums[i] + bias[i % n]);
            let wanted: Vec<f64> =
                (0..sums.len()).map(|i| biased(i, &wide(&bias)) + f64::from(residual[i])).collect();
            bench.check::<Float32>("linear", format!("bias, {name}, residual, {dtype}"), &wanted, || {
                let linear = Linear::new().maybe_activation(activation);
                ops::linear(&tensor, &weight, linear.bias(&bias_tensor).residual(&residual_wide))
            });
            let half = rounded(&bias, DataType::Bfloat16, n);
            let wanted: Vec<f64> = (0..sums.len()).map(|i| biased(i, &half)).collect();
            bench.check::<Bfloat16>("linear", format!("bfloat16 bias, {name}, {dtype}"), &wanted, || {
                let linear = Linear::new().maybe_activation(activation);
                ops::linear(&tensor, &weight, linear.bias(&bias_half))
            });
        }
        let wanted: Vec<f64> = sums
            .iter()
            .zip(rounded(&residual, DataType::Bfloat16, n))
            .map(|(sum, residual)| sum + residual)
            .collect();
        bench.check::<Bfloat16>("linear", format!("bfloat16 residual, {dtype}"), &wanted, || {
            ops::linear(&tensor, &weight, Linear::new().residual(&residual_half))
        });
    }
    residual_that_dies(bench)
}

/// The residual is an intermediate that nothing reads afterwards, so that a plan may work in place.
fn residual_that_dies<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let (m, n) = (35, 48);
    let (x, w) = (normal(5, m * n), scaled(6, n * n, 0.15));
    let tensor: Tensor<_, Float32> = bench.tensor([m, n], &x)?;
    let weight = Weight::from_in_out(bench.device, n, n, DataType::Float32, &w[..])?;
    let mut wanted = wide(&x);
    for _ in 0..3 {
        let sums = reference::matmul(&wanted, &wide(&w), n, n);
        wanted = wanted.iter().zip(sums).map(|(x, s)| x + s).collect();
    }
    bench.check::<Float32>("linear", "chain of residuals", &wanted, || {
        let one: Tensor<_, Float32> = ops::linear(&tensor, &weight, Linear::new().residual(&tensor))?;
        let two: Tensor<_, Float32> = ops::linear(&one, &weight, Linear::new().residual(&one))?;
        ops::linear(&two, &weight, Linear::new().residual(&two))
    });
    Ok(())
}

/// A sum that a narrow accumulator gets wrong, and blocks where one value takes all of the shared exponent.
pub(super) fn ones_and_outliers<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let k = 4096;
    let ones = vec![1.0f32; k];
    let row: Tensor<_, Bfloat16> = bench.tensor([1, k], &ones)?;
    for dtype in DataType::FLOATS {
        let column = Weight::from_in_out(bench.device, k, 1, dtype, &ones[..])?;
        bench.check::<Float32>("linear", format!("sum of 4096 ones in {dtype}"), &[k as f64], || {
            ops::linear(&row, &column, Linear::new())
        });
    }
    let (m, k, n) = (4, 64, 48);
    let x = normal(7, m * k);
    let mut w = normal(8, k * n);
    for block in w.chunks_exact_mut(16) {
        block[5] = 300.0;
    }
    let tensor: Tensor<_, Bfloat16> = bench.tensor([m, k], &x)?;
    let x = rounded(&x, DataType::Bfloat16, k);
    for dtype in [DataType::Bfloat8B, DataType::Bfloat4B] {
        let wanted = reference::matmul(&x, &rounded(&w, dtype, n), k, n);
        let weight = Weight::from_in_out(bench.device, k, n, dtype, &w[..])?;
        bench.check::<Float32>("linear", format!("an outlier in each block of {dtype}"), &wanted, || {
            ops::linear(&tensor, &weight, Linear::new())
        });
    }
    Ok(())
}

pub(super) fn matmul<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for (m, k, n) in [(49, 48, 296), (1, 4096, 1), (5, 33, 7)] {
        let batch = 3;
        let (a, b) = (normal(1, batch * m * k), scaled(2, batch * k * n, 0.1));
        let (ra, rb) = (rounded(&a, DataType::Bfloat16, k), rounded(&b, DataType::Bfloat16, n));
        let mut wanted = Vec::new();
        for (a, b) in ra.chunks_exact(m * k).zip(rb.chunks_exact(k * n)) {
            wanted.extend(reference::matmul(a, b, k, n));
        }
        let turned: Vec<f32> = b.chunks_exact(k * n).flat_map(|b| transposed(b, k)).collect();
        let a: Tensor<_, Bfloat16> = bench.tensor([batch, m, k], &a)?;
        let plain: Tensor<_, Bfloat16> = bench.tensor([batch, k, n], &b)?;
        let turned: Tensor<_, Bfloat16> = bench.tensor([batch, n, k], &turned)?;
        bench.check::<Float32>("matmul", format!("{batch}x{m}x{k}x{n}"), &wanted, || {
            ops::matmul(&a, &plain, ops::Matmul::default())
        });
        bench.check::<Bfloat16>("matmul", format!("{batch}x{m}x{k}x{n} transpose_b"), &wanted, || {
            ops::matmul(&a, &turned, ops::Matmul { transpose_b: true, ..Default::default() })
        });
        let columns = ops::permute(&a, &[0, 2, 1])?;
        bench.check::<Float32>("matmul", format!("{batch}x{m}x{k}x{n} transpose_a"), &wanted, || {
            ops::matmul(&columns, &plain, ops::Matmul { transpose_a: true, ..Default::default() })
        });
    }
    Ok(())
}
