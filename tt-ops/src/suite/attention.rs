//! Cases of attention, softmax and rotary embedding.

use super::Bench;
use super::data::{normal, rounded, scaled, wide};
use super::reference::{self, Attention};
use crate::device::Device;
use crate::dtype::{Bfloat16, DataType, Float32};
use crate::error::Result;
use crate::ops::{self, Sdpa};
use crate::tensor::Tensor;

const OP: &str = "scaled_dot_product_attention";

/// Head sizes of the model and of tiles; queries and keys that are no multiples of 32.
const SHAPES: [Attention; 7] = [
    Attention { batch: 2, heads: 2, kv_heads: 2, queries: 49, keys: 49, width: 48, causal: false },
    Attention { batch: 1, heads: 2, kv_heads: 2, queries: 49, keys: 81, width: 48, causal: false },
    Attention { batch: 2, heads: 1, kv_heads: 1, queries: 64, keys: 64, width: 72, causal: false },
    Attention { batch: 1, heads: 4, kv_heads: 2, queries: 40, keys: 40, width: 128, causal: true },
    Attention { batch: 1, heads: 2, kv_heads: 2, queries: 16, keys: 16, width: 64, causal: false },
    Attention { batch: 1, heads: 6, kv_heads: 2, queries: 33, keys: 33, width: 12, causal: true },
    Attention { batch: 1, heads: 1, kv_heads: 1, queries: 1, keys: 300, width: 24, causal: false },
];

struct Operands<D: Device> {
    tensors: [Tensor<D, Bfloat16>; 3],
    values: [Vec<f64>; 3],
}

fn operands<D: Device>(bench: &Bench<'_, D>, a: Attention, scale: f32) -> Result<Operands<D>> {
    let query = a.batch * a.heads * a.queries * a.width;
    let key = a.batch * a.kv_heads * a.keys * a.width;
    let raw = [scaled(1, query, scale), normal(2, key), normal(3, key)];
    let q = bench.tensor([a.batch, a.heads, a.queries, a.width], &raw[0])?;
    let k = bench.tensor([a.batch, a.kv_heads, a.keys, a.width], &raw[1])?;
    let v = bench.tensor([a.batch, a.kv_heads, a.keys, a.width], &raw[2])?;
    Ok(Operands { tensors: [q, k, v], values: raw.map(|r| rounded(&r, DataType::Bfloat16, a.width)) })
}

fn name(a: Attention) -> String {
    let Attention { batch, heads, kv_heads, queries, keys, width, causal } = a;
    format!(
        "{batch} x {heads}/{kv_heads} heads of {width}, {queries} x {keys}{}",
        if causal { ", causal" } else { "" }
    )
}

pub(super) fn plain<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for a in SHAPES {
        let Operands { tensors: [q, k, v], values } = operands(bench, a, 1.0)?;
        let wanted = reference::attention(a, &values[0], &values[1], &values[2], None);
        bench.check::<Bfloat16>(OP, name(a), &wanted, || {
            let args = if a.causal { Sdpa::new().causal() } else { Sdpa::new() };
            ops::scaled_dot_product_attention(&q, &k, &v, args)
        });
    }
    Ok(())
}

/// Explicit masks over key lengths that are no multiples of 32: what lies past the last key must not count.
pub(super) fn masked<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for keys in [16, 40, 49, 81, 267] {
        let a = Attention { batch: 2, heads: 2, kv_heads: 2, queries: 16, keys, width: 48, causal: false };
        let Operands { tensors: [q, k, v], values } = operands(bench, a, 1.0)?;
        for low in [f32::NEG_INFINITY, -1e9] {
            // The last third is masked, as padding of a bucket is; row 3 sees everything.
            let masked = |i: usize| i % keys >= keys - keys / 3 && i / keys != 3;
            let mask: Vec<f32> = (0..16 * keys).map(|i| if masked(i) { low } else { 0.0 }).collect();
            let rounded = rounded(&mask, DataType::Bfloat16, keys);
            let wide_mask: Tensor<_, Float32> = bench.tensor([1, 1, 16, keys], &mask)?;
            let half_mask: Tensor<_, Bfloat16> = bench.tensor([1, 1, 16, keys], &mask)?;
            let wanted = reference::attention(a, &values[0], &values[1], &values[2], Some(&wide(&mask)));
            bench.check::<Bfloat16>(OP, format!("{keys} keys, float32 mask of {low}"), &wanted, || {
                ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().attn_mask(&wide_mask))
            });
            let wanted = reference::attention(a, &values[0], &values[1], &values[2], Some(&rounded));
            bench.check::<Bfloat16>(OP, format!("{keys} keys, bfloat16 mask of {low}"), &wanted, || {
                ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().attn_mask(&half_mask))
            });
        }
    }
    Ok(())
}

/// Rows that see nothing, and scores of ±1e4.
pub(super) fn extremes<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    let a = Attention { batch: 1, heads: 2, kv_heads: 1, queries: 20, keys: 20, width: 64, causal: false };
    let Operands { tensors: [q, k, v], values } = operands(bench, a, 1.0)?;
    let mask: Vec<f32> = (0..400).map(|i| if i / 20 == 7 { f32::NEG_INFINITY } else { 0.0 }).collect();
    let mask_tensor: Tensor<_, Float32> = bench.tensor([1, 1, 20, 20], &mask)?;
    let wanted = reference::attention(a, &values[0], &values[1], &values[2], Some(&wide(&mask)));
    bench.check::<Bfloat16>(OP, "a row that is masked whole", &wanted, || {
        ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().attn_mask(&mask_tensor))
    });
    // Scores of fp32 sums near 1e4 are only known to about 1e-3, so one key must win clearly.
    let wins: Vec<f32> = (0..400).map(|i| if i % 20 == (i / 20 * 7) % 20 { 1e4 } else { -1e4 }).collect();
    let wins_tensor: Tensor<_, Float32> = bench.tensor([1, 1, 20, 20], &wins)?;
    let wanted = reference::attention(a, &values[0], &values[1], &values[2], Some(&wide(&wins)));
    bench.check::<Bfloat16>(OP, "scores of ±1e4", &wanted, || {
        ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().attn_mask(&wins_tensor))
    });
    Ok(())
}

pub(super) fn softmax<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for width in [1, 33, 300] {
        let mut x = scaled(5, 8 * width, 4.0);
        for (row, big) in [(1, 1e4), (2, -1e4)] {
            x[row * width..(row + 1) * width].iter_mut().for_each(|v| *v = big + v.round());
        }
        x[3 * width..4 * width].fill(f32::NEG_INFINITY);
        x[4 * width] = f32::NEG_INFINITY;
        let tensor: Tensor<_, Float32> = bench.tensor([2, 4, width], &x)?;
        let wanted: Vec<f64> = wide(&x).chunks_exact(width).flat_map(reference::softmax).collect();
        bench.check::<Float32>("softmax", format!("{width} float32"), &wanted, || ops::softmax(&tensor, -1));
        bench.check::<Bfloat16>("softmax", format!("{width} to bfloat16"), &wanted, || {
            ops::softmax(&tensor, 2)
        });
    }
    Ok(())
}

pub(super) fn rotary<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for (heads, rows, width) in [(3, 40, 128), (2, 5, 24), (1, 1, 2)] {
        let x = normal(1, heads * rows * width);
        let (cos, sin) = (normal(2, rows * width), normal(3, rows * width));
        let tensor: Tensor<_, Bfloat16> = bench.tensor([1, heads, rows, width], &x)?;
        let cos_tensor: Tensor<_, Float32> = bench.tensor([rows, width], &cos)?;
        let sin_tensor: Tensor<_, Bfloat16> = bench.tensor([1, 1, rows, width], &sin)?;
        let (x, sin) = (rounded(&x, DataType::Bfloat16, width), rounded(&sin, DataType::Bfloat16, width));
        let wanted: Vec<f64> = (0..x.len())
            .map(|i| {
                let (row, column) = (i / width, i % width);
                let table = row % rows * width + column;
                let half = width / 2;
                let partner = if column < half {
                    -x[row * width + column + half]
                } else {
                    x[row * width + column - half]
                };
                x[i] * f64::from(cos[table]) + partner * sin[table]
            })
            .collect();
        bench.check::<Float32>(
            "rotary_embedding",
            format!("{heads} heads, {rows} x {width}"),
            &wanted,
            || ops::rotary_embedding(&tensor, &cos_tensor, &sin_tensor),
        );
    }
    Ok(())
}
