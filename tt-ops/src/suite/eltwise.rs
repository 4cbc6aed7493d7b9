//! Cases of element-wise ops.

use super::Bench;
use super::data::{normal, rounded, wide};
use super::reference;
use crate::device::Device;
use crate::dtype::{Bfloat16, DataType, Float32};
use crate::error::Result;
use crate::op::{Activation, BinaryOp, UnaryOp};
use crate::ops::{self, Gelu};
use crate::tensor::Tensor;

/// -12 … 12 in steps that `bfloat16` holds near 0, with 0 itself.
fn ramp() -> Vec<f32> {
    (-768i16..=768).map(|i| f32::from(i) / 64.0).collect()
}

pub(super) fn gelu<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let x = ramp();
    let len = x.len();
    let wide_x: Tensor<_, Float32> = bench.tensor([1, len], &x)?;
    let half_x: Tensor<_, Bfloat16> = bench.tensor([1, len], &x)?;
    for (name, variant, function) in [
        ("tanh", Gelu::Tanh, reference::gelu_tanh as fn(f64) -> f64),
        ("erf", Gelu::Erf, reference::gelu_erf),
    ] {
        let wanted: Vec<f64> = wide(&x).into_iter().map(function).collect();
        bench.check::<Float32>("gelu", format!("{name} float32"), &wanted, || ops::gelu(&wide_x, variant));
        let wanted: Vec<f64> = rounded(&x, DataType::Bfloat16, len).into_iter().map(function).collect();
        bench.check::<Bfloat16>("gelu", format!("{name} bfloat16"), &wanted, || ops::gelu(&half_x, variant));
        let zeros: Tensor<_, Bfloat16> = bench.tensor([3], &[0.0f32, -0.0, 0.0])?;
        bench.note("gelu", format!("{name} is exactly 0 at 0"), || {
            let at_zero = bench.run(|| ops::gelu::<_, _, Bfloat16>(&zeros, variant));
            match at_zero.and_then(|t| t.to_vector::<f32>()) {
                Ok(values) if values.iter().all(|&v| v == 0.0) => None,
                Ok(values) => Some(format!("{values:?}")),
                Err(error) => Some(error.to_string()),
            }
        });
    }
    Ok(())
}

pub(super) fn unary<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let x = ramp();
    let tensor: Tensor<_, Float32> = bench.tensor([1, 1, 1, x.len()], &x)?;
    for (op, function) in [
        (UnaryOp::Silu, reference::silu as fn(f64) -> f64),
        (UnaryOp::Relu, |x| x.max(0.0)),
        (UnaryOp::Tanh, f64::tanh),
        (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::Exp, f64::exp),
        (UnaryOp::Neg, |x| -x),
    ] {
        let wanted: Vec<f64> = wide(&x).into_iter().map(function).collect();
        bench.check::<Float32>(op.name(), "ramp, float32", &wanted, || ops::unary(op, &tensor));
        bench.check::<Bfloat16>(op.name(), "ramp, to bfloat16", &wanted, || ops::unary(op, &tensor));
    }
    Ok(())
}

pub(super) fn binary<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let (a, row, column) = (normal(1, 2 * 3 * 37), normal(2, 37), normal(3, 3));
    let tensor: Tensor<_, Float32> = bench.tensor([2, 3, 37], &a)?;
    let row_tensor: Tensor<_, Float32> = bench.tensor([37], &row)?;
    let column_tensor: Tensor<_, Float32> = bench.tensor([1, 3, 1], &column)?;
    for (op, function) in [
        (BinaryOp::Add, (|a, b| a + b) as fn(f64, f64) -> f64),
        (BinaryOp::Subtract, |a, b| a - b),
        (BinaryOp::Multiply, |a, b| a * b),
        (BinaryOp::Divide, |a, b| a / b),
    ] {
        let with = |b: &dyn Fn(usize) -> f32| -> Vec<f64> {
            (0..a.len()).map(|i| function(f64::from(a[i]), f64::from(b(i)))).collect()
        };
        let none = ops::Binary::default();
        bench.check::<Float32>(op.name(), "a tensor with itself", &with(&|i| a[i]), || {
            ops::binary(op, &tensor, &tensor, none)
        });
        bench.check::<Float32>(op.name(), "a row for all", &with(&|i| row[i % 37]), || {
            ops::binary(op, &tensor, &row_tensor, none)
        });
        bench.check::<Bfloat16>(op.name(), "a column for all", &with(&|i| column[i / 37 % 3]), || {
            ops::binary(op, &tensor, &column_tensor, none)
        });
        bench.check::<Float32>(op.name(), "a number", &with(&|_| 0.25), || {
            ops::binary(op, &tensor, 0.25, none)
        });
    }
    let both: Vec<f64> = (0..111).map(|i| f64::from(row[i % 37]) + f64::from(column[i / 37])).collect();
    bench.check::<Float32>("add", "both operands stretch", &both, || ops::add(&column_tensor, &row_tensor));
    Ok(())
}

pub(super) fn gated<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let (rows, n) = (5, 72);
    let x = normal(1, rows * 2 * n);
    let tensor: Tensor<_, Bfloat16> = bench.tensor([1, rows, 2 * n], &x)?;
    let x = rounded(&x, DataType::Bfloat16, 2 * n);
    let value = |i: usize, half: usize| x[i / n * 2 * n + half * n + i % n];
    let wanted: Vec<f64> = (0..rows * n).map(|i| value(i, 0) * reference::silu(value(i, 1))).collect();
    bench.check::<Bfloat16>("swiglu", "bfloat16", &wanted, || ops::swiglu(&tensor));
    bench.check::<Float32>("multiply", "silu of the first operand, on slices", &wanted, || {
        let (up, gate) = (ops::slice_dim(&tensor, -1, 0..n)?, ops::slice_dim(&tensor, -1, n..2 * n)?);
        let fused = ops::Binary { lhs_activation: Some(Activation::Silu), ..Default::default() };
        ops::multiply_with(&gate, &up, fused)
    });
    let wanted: Vec<f64> = (0..rows * n).map(|i| (value(i, 0) + value(i, 1)).max(0.0)).collect();
    bench.check::<Bfloat16>("add", "relu of the sum", &wanted, || {
        let (a, b) = (ops::slice_dim(&tensor, -1, 0..n)?, ops::slice_dim(&tensor, -1, n..2 * n)?);
        ops::binary(
            BinaryOp::Add,
            &a,
            &b,
            ops::Binary { activation: Some(Activation::Relu), ..Default::default() },
        )
    });
    Ok(())
}
