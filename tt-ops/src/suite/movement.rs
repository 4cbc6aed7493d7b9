//! Cases of ops that only move values.

use super::Bench;
use super::data::{normal, rounded, transposed, wide};
use crate::device::Device;
use crate::dtype::{Bfloat4B, Bfloat8B, Bfloat16, DataType, Float32, Int32, Uint32};
use crate::error::Result;
use crate::layout::Layout;
use crate::ops;
use crate::tensor::Tensor;

/// 1 + 32 + 16 rows: the sequence of state, future tokens and actions.
pub(super) fn concat_and_slice<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let width = 48;
    let parts: Vec<Vec<f32>> =
        [1, 32, 16].iter().enumerate().map(|(i, rows)| normal(i as u64, rows * width)).collect();
    let all: Vec<f64> = parts.iter().flat_map(|p| wide(p)).collect();
    let tensors: Vec<Tensor<D, Float32>> =
        parts.iter().map(|p| bench.tensor([1, p.len() / width, width], p)).collect::<Result<_>>()?;
    let refs: Vec<&Tensor<D, Float32>> = tensors.iter().collect();
    bench.check::<Float32>("concat", "1 + 32 + 16 rows", &all, || ops::concat(&refs, -2));
    bench.check::<Float32>("slice", "the last 16 of 49 rows", &all[33 * width..], || {
        let joined = ops::concat(&refs, 1)?;
        ops::clone(&ops::slice_dim(&joined, 1, 33..49)?)
    });
    let joined = ops::concat(&refs, 1)?;
    let wanted: Vec<f64> = all.chunks_exact(width).flat_map(|row| row[5..40].to_vec()).collect();
    bench.check::<Float32>("slice", "columns 5..40", &wanted, || ops::slice_dim(&joined, -1, 5..40));
    let wanted: Vec<f64> =
        (1..49).step_by(3).flat_map(|r| all[r * width..(r + 1) * width].to_vec()).collect();
    bench.check::<Float32>("slice", "each third row", &wanted, || {
        ops::slice(&joined, &[0, 1, 0], &[1, 49, width], &[1, 3, 1])
    });
    let wanted: Vec<f64> = all.chunks_exact(width).flat_map(|row| [row, row].concat()).collect();
    bench.check::<Float32>("concat", "columns", &wanted, || ops::concat(&[&joined, &joined], 2));
    Ok(())
}

pub(super) fn reshape_and_permute<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let x = normal(1, 2 * 6 * 35);
    let tensor: Tensor<_, Float32> = bench.tensor([2, 6, 35], &x)?;
    let x = wide(&x);
    for shape in [&[12, 35][..], &[2, 6, 5, 7], &[420], &[4, 105], &[2, 2, 3, 35], &[1, 1, 2, 210]] {
        let Some(shape) = crate::Shape::new(shape) else { continue };
        bench.check::<Float32>("reshape", format!("[2, 6, 35] to {shape}"), &x, || {
            ops::reshape(&tensor, shape)
        });
    }
    let turned: Vec<f64> = x.chunks_exact(6 * 35).flat_map(|m| transposed(m, 6)).collect();
    bench.check::<Float32>("permute", "the last two", &turned, || ops::transpose(&tensor, -2, -1));
    bench.check::<Float32>("reshape", "of a transpose", &turned, || {
        ops::reshape(&ops::transpose(&tensor, 1, 2)?, [2, 210])
    });
    bench.check::<Float32>("permute", "and back", &x, || {
        ops::permute(&ops::clone(&ops::permute(&tensor, &[2, 0, 1])?)?, &[1, 2, 0])
    });
    bench.check::<Float32>("to_layout", "row-major and back", &x, || {
        ops::to_layout(&ops::to_layout(&tensor, Layout::RowMajor)?, Layout::Tile)
    });
    Ok(())
}

pub(super) fn typecast_and_embedding<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let width = 50;
    let mut x = normal(1, 3 * width);
    x[width + 2] = 1e3;
    let tensor: Tensor<_, Float32> = bench.tensor([3, width], &x)?;
    let to = |dtype| rounded(&x, dtype, width);
    bench.check::<Bfloat16>("typecast", "float32 to bfloat16", &to(DataType::Bfloat16), || {
        ops::typecast(&tensor)
    });
    bench.check::<Bfloat8B>("typecast", "float32 to bfloat8_b", &to(DataType::Bfloat8B), || {
        ops::typecast(&tensor)
    });
    bench.check::<Bfloat4B>("typecast", "float32 to bfloat4_b", &to(DataType::Bfloat4B), || {
        ops::typecast(&tensor)
    });
    bench.check::<Float32>("typecast", "bfloat8_b to float32", &to(DataType::Bfloat8B), || {
        ops::typecast(&ops::typecast::<_, _, Bfloat8B>(&tensor)?)
    });
    let whole: Vec<f64> = x.iter().map(|v| f64::from(v.trunc())).collect();
    bench.check::<Float32>("typecast", "through int32", &whole, || {
        ops::typecast(&ops::typecast::<_, _, Int32>(&tensor)?)
    });
    let (vocabulary, n) = (70, 40);
    let table = normal(2, vocabulary * n);
    let table_tensor: Tensor<_, Bfloat16> =
        Tensor::from_span_with(bench.device, Layout::RowMajor, [vocabulary, n], &table)?;
    let table = rounded(&table, DataType::Bfloat16, n);
    let ids: Vec<u32> = (0..2 * 9).map(|i| i * 29 % 70).collect();
    let wanted: Vec<f64> =
        ids.iter().flat_map(|&id| table[id as usize * n..(id as usize + 1) * n].to_vec()).collect();
    let batch: Tensor<_, Uint32> = bench.tensor([2, 9], &ids)?;
    let flat: Tensor<_, Uint32> = bench.tensor([18], &ids)?;
    bench.check::<Float32>("embedding", "[2, 9] ids", &wanted, || ops::embedding(&batch, &table_tensor));
    bench.check::<Bfloat16>("embedding", "[18] ids", &wanted, || ops::embedding(&flat, &table_tensor));
    Ok(())
}
