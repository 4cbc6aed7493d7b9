//! Cases of head split and merge.

use super::Bench;
use super::data::{normal, rounded};
use crate::device::Device;
use crate::dtype::{Bfloat16, DataType};
use crate::error::Result;
use crate::ops::{self, Heads};
use crate::tensor::Tensor;

const OP: &str = "split_query_key_value_and_split_heads";

/// `[b, heads, s, e]` from rows `[b, s, width]`, heads starting at column `start`.
fn heads(x: &[f64], [b, s, width]: [usize; 3], start: usize, heads: usize, e: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(b * heads * s * e);
    for batch in 0..b {
        for head in 0..heads {
            for row in 0..s {
                let at = (batch * s + row) * width + start + head * e;
                out.extend_from_slice(&x[at..at + e]);
            }
        }
    }
    out
}

pub(super) fn split<D: Device>(bench: &Bench<'_, D>) -> Result<()> {
    for (b, s, h, kv, e) in [(2, 49, 4, 4, 48), (1, 40, 4, 2, 128), (2, 3, 6, 2, 12)] {
        let width = (h + 2 * kv) * e;
        let x = normal(1, b * s * width);
        let qkv: Tensor<_, Bfloat16> = bench.tensor([b, s, width], &x)?;
        let x = rounded(&x, DataType::Bfloat16, width);
        let count = Heads::new(h).kv_heads(kv);
        let case = format!("{b} x {s}, {h}/{kv} heads of {e}");
        let parts = [(0, h), (h, kv), (h + kv, kv)];
        for (index, (first, number)) in parts.into_iter().enumerate() {
            let wanted = heads(&x, [b, s, width], first * e, number, e);
            bench.check::<Bfloat16>(OP, format!("{case}, part {index}"), &wanted, || {
                let (q, k, v) = ops::split_query_key_value_and_split_heads(&qkv, None, count)?;
                ops::clone(&[q, k, v][index])
            });
        }
        let wanted = heads(&x, [b, s, width], h * e, kv, e);
        let turned: Vec<f64> =
            wanted.chunks_exact(s * e).flat_map(|m| super::data::transposed(m, s)).collect();
        bench.check::<Bfloat16>(OP, format!("{case}, transposed keys"), &turned, || {
            let count = Heads { transpose_key: true, ..count };
            ops::clone(&ops::split_query_key_value_and_split_heads(&qkv, None, count)?.1)
        });
        let q: Tensor<_, Bfloat16> = ops::clone(&ops::slice_dim(&qkv, -1, 0..h * e)?)?;
        let kv_tensor: Tensor<_, Bfloat16> = ops::clone(&ops::slice_dim(&qkv, -1, h * e..width)?)?;
        let wanted = heads(&x, [b, s, width], (h + kv) * e, kv, e);
        bench.check::<Bfloat16>(OP, format!("{case}, q and kv apart"), &wanted, || {
            ops::clone(&ops::split_query_key_value_and_split_heads(&q, Some(&kv_tensor), count)?.2)
        });
        let back: Vec<f64> = x.chunks_exact(width).flat_map(|row| row[..h * e].to_vec()).collect();
        bench.check::<Bfloat16>("concatenate_heads", case, &back, || {
            ops::concatenate_heads(&ops::split_heads(&q, h)?)
        });
    }
    Ok(())
}
