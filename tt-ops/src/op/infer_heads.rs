//! Operand checks and output shapes of attention and its neighbours.

use super::infer::{Operands, OutputSpecs, activation_type};
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::shape::Shape;

/// `[b, h, s, e]` of a rank-4 tensor.
fn heads(op: &'static str, what: &str, shape: Shape) -> Result<[usize; 4]> {
    if shape.rank() == 4 {
        Ok(shape.as_rank4())
    } else {
        Err(TtError::shape(op, format!("{what} {shape}"), "[b, h, s, e]"))
    }
}

pub(super) fn attention(
    operands: &Operands<'_>,
    is_causal: bool,
    scale: f32,
    attn_mask: bool,
) -> Result<OutputSpecs> {
    let op = operands.op;
    let (q, k, v) = (operands.tile(0)?, operands.tile(1)?, operands.tile(2)?);
    activation_type(op, q.dtype)?;
    if q.dtype != k.dtype || q.dtype != v.dtype {
        let got = format!("q {}, k {}, v {}", q.dtype, k.dtype, v.dtype);
        return Err(TtError::dtype(op, got, "three of one type"));
    }
    let [b, h, sq, e] = heads(op, "q", q.shape)?;
    let [bk, kv, sk, ek] = heads(op, "k", k.shape)?;
    let got = || format!("q {}, k {}, v {}", q.shape, k.shape, v.shape);
    if k.shape != v.shape || bk != b || ek != e || !h.is_multiple_of(kv) {
        return Err(TtError::shape(op, got(), "q [b, h, sq, e], k and v [b, kv, sk, e], kv dividing h"));
    }
    if is_causal && sq != sk {
        return Err(TtError::shape(op, got(), "as many keys as queries where is_causal"));
    }
    if is_causal && attn_mask {
        return Err(TtError::argument(op, "is_causal and attn_mask", "one of them"));
    }
    if !scale.is_finite() {
        return Err(TtError::argument(op, format!("scale {scale}"), "a finite number"));
    }
    if attn_mask {
        let m = operands.tile(3)?;
        activation_type(op, m.dtype)?;
        let [mb, mh, mq, mk] = m.shape.as_rank4();
        if (mb != b && mb != 1) || (mh != h && mh != 1) || mq != sq || mk != sk {
            let wanted = format!("[1 or {b}, 1 or {h}, {sq}, {sk}]");
            return Err(TtError::shape(op, format!("attn_mask {}", m.shape), wanted));
        }
    }
    Ok(vec![q])
}

pub(super) fn rotary(operands: &Operands<'_>, dtype: DataType) -> Result<OutputSpecs> {
    let op = operands.op;
    let x = operands.tile(0)?;
    let [_, _, s, e] = heads(op, "x", x.shape)?;
    if !e.is_multiple_of(2) {
        return Err(TtError::shape(op, x.shape.to_string(), "an even head_dim"));
    }
    for (index, what) in [(1, "cos"), (2, "sin")] {
        let table = operands.tile(index)?;
        activation_type(op, table.dtype)?;
        let [t0, t1, ts, te] = table.shape.as_rank4();
        if t0 != 1 || t1 != 1 || ts != s || te != e {
            return Err(TtError::shape(op, format!("{what} {}", table.shape), format!("[1, 1, {s}, {e}]")));
        }
    }
    Ok(vec![x.with_dtype(dtype)])
}

pub(super) fn split(
    operands: &Operands<'_>,
    kv: bool,
    num_heads: usize,
    num_kv_heads: usize,
    transpose_key: bool,
) -> Result<OutputSpecs> {
    let op = operands.op;
    let x = operands.tile(0)?;
    if num_heads == 0 || num_kv_heads == 0 {
        return Err(TtError::argument(
            op,
            format!("num_heads {num_heads}, num_kv_heads {num_kv_heads}"),
            "at least 1",
        ));
    }
    let parts = if kv { num_heads } else { num_heads + 2 * num_kv_heads };
    let wanted = || if kv { "q [b, s, h e] and kv [b, s', 2 kv e]" } else { "[b, s, (h + 2 kv) e]" };
    let got = format!("x {}, num_heads {num_heads}, num_kv_heads {num_kv_heads}", x.shape);
    if x.shape.rank() != 3 || !x.shape.last().is_multiple_of(parts) {
        return Err(TtError::shape(op, got, wanted()));
    }
    let (b, s, e) = (x.shape.dims()[0], x.shape.dims()[1], x.shape.last() / parts);
    let mut key_rows = s;
    if kv {
        let y = operands.tile(1)?;
        if y.dtype != x.dtype {
            return Err(TtError::dtype(op, format!("q {}, kv {}", x.dtype, y.dtype), "two of one type"));
        }
        if y.shape.rank() != 3 || y.shape.dims()[0] != b || y.shape.last() != 2 * num_kv_heads * e {
            return Err(TtError::shape(op, format!("{got}, kv {}", y.shape), wanted()));
        }
        key_rows = y.shape.dims()[1];
    }
    let value = [b, num_kv_heads, key_rows, e];
    let key = if transpose_key { [b, num_kv_heads, e, key_rows] } else { value };
    Ok(vec![x.with_shape([b, num_heads, s, e]), x.with_shape(key), x.with_shape(value)])
}

pub(super) fn concatenate(operands: &Operands<'_>) -> Result<OutputSpecs> {
    let x = operands.tile(0)?;
    let [b, h, s, e] = heads(operands.op, "x", x.shape)?;
    Ok(vec![x.with_shape([b, s, h * e])])
}
