//! From an op to planned kernel calls on the software device: what each op becomes.

use tt_soft::plan::{Arrangement, Kernel};
use tt_soft::{Dtype, Fused};

use super::host::block_format;
use super::lower::{Lowering, Source};
use super::storage;
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::op::{Activation, BinaryOp, Op, UnaryOp};
use crate::spec::TensorSpec;

/// Lowers an op whose operands were checked. Gives one source per result.
pub(super) fn lower(l: &mut Lowering<'_>, op: &Op, outputs: &[TensorSpec]) -> Result<Vec<Source>> {
    let Some(out) = outputs.first() else {
        return Err(TtError::argument(l.op, "no results", "one"));
    };
    let shape = out.shape.as_rank4();
    let dtype = storage(out.dtype);
    let one = match op {
        Op::Linear { bias, activation, residual, .. } => {
            let mut inputs = vec![l.tensor(0)?.operand];
            if *bias {
                let vector = l.tensor(1)?;
                inputs.push(l.vector(&vector));
            }
            if *residual {
                inputs.push(l.tensor(1 + usize::from(*bias))?.operand);
            }
            let weight = l.weight()?;
            let activation = activation.map(fused);
            finish(
                l,
                Kernel::Linear { weight, bias: *bias, activation, residual: *residual },
                inputs,
                dtype,
                shape,
            )
        }
        Op::Matmul { transpose_a, transpose_b, .. } => {
            let (a, b) = (l.tensor(0)?.operand, l.tensor(1)?.operand);
            let a = if *transpose_a { a.permute([0, 1, 3, 2]) } else { a };
            finish(l, Kernel::Matmul { transpose_b: *transpose_b }, vec![a, b], dtype, shape)
        }
        Op::LayerNorm { epsilon, weight, bias, .. } => {
            let inputs = norm_inputs(l)?;
            finish(
                l,
                Kernel::LayerNorm { epsilon: *epsilon, weight: *weight, bias: *bias },
                inputs,
                dtype,
                shape,
            )
        }
        Op::RmsNorm { epsilon, weight, .. } => {
            let inputs = norm_inputs(l)?;
            finish(l, Kernel::RmsNorm { epsilon: *epsilon, weight: *weight }, inputs, dtype, shape)
        }
        Op::ScaledDotProductAttention { is_causal, scale, attn_mask, .. } => {
            let inputs = l.tensors().iter().map(|t| t.operand).collect();
            let kernel = Kernel::Sdpa { causal: *is_causal, scale: *scale, mask: *attn_mask };
            let result = l.fresh(dtype, shape, Arrangement::Heads);
            l.call(kernel, inputs, result.operand);
            result
        }
        Op::Softmax { .. } => one_operand(l, Kernel::Softmax, dtype, shape)?,
        Op::RotaryEmbedding { .. } => {
            let inputs = l.tensors().iter().map(|t| t.operand).collect();
            finish(l, Kernel::Rotary, inputs, dtype, shape)
        }
        Op::Unary { op, .. } => one_operand(l, Kernel::Unary(unary(*op)), dtype, shape)?,
        Op::Binary { .. } | Op::Swiglu { .. } => binary(l, op, dtype, shape)?,
        Op::Embedding { .. } => {
            let inputs = l.tensors().iter().map(|t| t.operand).collect();
            finish(l, Kernel::Embedding, inputs, dtype, shape)
        }
        Op::SplitQueryKeyValueAndSplitHeads { kv, num_heads, num_kv_heads, transpose_key } => {
            return split_heads(l, [*num_heads, *num_kv_heads], *kv, *transpose_key);
        }
        Op::Typecast { dtype: to } => typecast(l, *to)?,
        _ => moved(l, op, out)?,
    };
    Ok(vec![one])
}

/// Ops that only move values.
fn moved(l: &mut Lowering<'_>, op: &Op, out: &TensorSpec) -> Result<Source> {
    let (shape, dtype) = (out.shape.as_rank4(), storage(out.dtype));
    let front = 4 - out.shape.rank();
    match op {
        Op::Concat { dim } => {
            let result = l.fresh(dtype, shape, Arrangement::Rows);
            let mut start = 0;
            for part in l.tensors() {
                let len = part.operand.shape[front + dim];
                l.call(Kernel::Copy, vec![part.operand], result.operand.slice(front + dim, start, len, 1));
                start += len;
            }
            Ok(result)
        }
        Op::Slice { begins, step, .. } => {
            let x = l.tensor(0)?;
            let operand = (0..begins.len()).fold(x.operand, |operand, dim| {
                operand.slice(front + dim, begins[dim], shape[front + dim], step[dim])
            });
            Ok(x.seen_as(operand))
        }
        Op::Reshape { .. } => {
            let x = l.tensor(0)?;
            l.reshape(&x, shape)
        }
        Op::Permute { dims } => {
            let x = l.tensor(0)?;
            let order = std::array::from_fn(|i| if i < front { i } else { front + dims[i - front] });
            Ok(x.seen_as(x.operand.permute(order)))
        }
        Op::ConcatenateHeads => {
            let x = l.tensor(0)?;
            let rows_first = x.seen_as(x.operand.permute([0, 2, 1, 3]));
            l.reshape(&rows_first, shape)
        }
        Op::Clone { .. } => {
            let x = l.tensor(0)?;
            Ok(l.copy(&x, dtype, Arrangement::Rows))
        }
        Op::ToLayout { .. } | Op::ToMemoryConfig { .. } => l.tensor(0),
        _ => Err(TtError::argument(l.op, "this op", "one that the software device knows")),
    }
}

/// One call into a fresh result.
fn finish(
    l: &mut Lowering<'_>,
    kernel: Kernel,
    inputs: Vec<tt_soft::plan::Operand>,
    dtype: Dtype,
    shape: [usize; 4],
) -> Source {
    let result = l.fresh(dtype, shape, Arrangement::Rows);
    l.call(kernel, inputs, result.operand);
    result
}

fn one_operand(l: &mut Lowering<'_>, kernel: Kernel, dtype: Dtype, shape: [usize; 4]) -> Result<Source> {
    let x = l.tensor(0)?.operand;
    Ok(finish(l, kernel, vec![x], dtype, shape))
}

fn norm_inputs(l: &mut Lowering<'_>) -> Result<Vec<tt_soft::plan::Operand>> {
    let mut inputs = vec![l.tensor(0)?.operand];
    for parameter in l.tensors().iter().skip(1) {
        inputs.push(l.vector(parameter));
    }
    Ok(inputs)
}

fn binary(l: &mut Lowering<'_>, op: &Op, dtype: Dtype, shape: [usize; 4]) -> Result<Source> {
    let x = l.tensor(0)?.operand;
    let Op::Binary { op, scalar, lhs_activation, rhs_activation, activation, .. } = op else {
        // swiglu: the second half is the gate.
        let (up, gate) = (x.slice(3, 0, shape[3], 1), x.slice(3, shape[3], shape[3], 1));
        let fused = Fused { rhs: Some(tt_soft::Activation::Silu), ..Fused::default() };
        return Ok(finish(l, Kernel::Binary(tt_soft::Binary::Mul, fused), vec![up, gate], dtype, shape));
    };
    let fused = Fused {
        lhs: lhs_activation.map(fused),
        rhs: rhs_activation.map(fused),
        result: activation.map(fused),
    };
    let a = x.broadcast(shape);
    if let Some(scalar) = scalar {
        return Ok(finish(l, Kernel::BinaryScalar(two(*op), fused, *scalar), vec![a], dtype, shape));
    }
    let b = l.tensor(1)?.operand.broadcast(shape);
    Ok(finish(l, Kernel::Binary(two(*op), fused), vec![a, b], dtype, shape))
}

fn split_heads(
    l: &mut Lowering<'_>,
    [heads, kv_heads]: [usize; 2],
    kv: bool,
    transpose_key: bool,
) -> Result<Vec<Source>> {
    let x = l.tensor(0)?;
    let parts = if kv { heads } else { heads + 2 * kv_heads };
    let x = by_heads(l, &x, parts)?;
    let take = |source: &Source, start, len| {
        source.seen_as(source.operand.slice(2, start, len, 1).permute([0, 2, 1, 3]))
    };
    let q = take(&x, 0, heads);
    let (k, v) = if kv {
        let y = l.tensor(1)?;
        let y = by_heads(l, &y, 2 * kv_heads)?;
        (take(&y, 0, kv_heads), take(&y, kv_heads, kv_heads))
    } else {
        (take(&x, heads, kv_heads), take(&x, heads + kv_heads, kv_heads))
    };
    let k = if transpose_key { k.seen_as(k.operand.permute([0, 1, 3, 2])) } else { k };
    Ok(vec![q, k, v])
}

/// `[1, b, s, parts · e]` as `[b, s, parts, e]`.
fn by_heads(l: &mut Lowering<'_>, x: &Source, parts: usize) -> Result<Source> {
    let [_, b, s, width] = x.operand.shape;
    l.reshape(x, [b, s, parts, width / parts])
}

fn typecast(l: &mut Lowering<'_>, to: DataType) -> Result<Source> {
    let x = l.tensor(0)?;
    if let Some(format) = block_format(to) {
        let source = if matches!(x.operand.dtype, Dtype::U32 | Dtype::I32) {
            l.copy(&x, Dtype::F32, Arrangement::Rows)
        } else {
            x
        };
        let shape = source.operand.shape;
        return Ok(finish(l, Kernel::Quantize(format), vec![source.operand], storage(to), shape));
    }
    // Every value of a block format is a bfloat16, so the way back is a view.
    if storage(to) == x.operand.dtype {
        return Ok(x);
    }
    Ok(l.copy(&x, storage(to), Arrangement::Rows))
}

fn fused(activation: Activation) -> tt_soft::Activation {
    match activation {
        Activation::GeluTanh => tt_soft::Activation::GeluTanh,
        Activation::GeluErf => tt_soft::Activation::GeluErf,
        Activation::Silu => tt_soft::Activation::Silu,
        Activation::Relu => tt_soft::Activation::Relu,
    }
}

fn unary(op: UnaryOp) -> tt_soft::Unary {
    let activation = match op {
        UnaryOp::GeluTanh => tt_soft::Activation::GeluTanh,
        UnaryOp::GeluErf => tt_soft::Activation::GeluErf,
        UnaryOp::Silu => tt_soft::Activation::Silu,
        UnaryOp::Relu => tt_soft::Activation::Relu,
        UnaryOp::Tanh => tt_soft::Activation::Tanh,
        UnaryOp::Sigmoid => tt_soft::Activation::Sigmoid,
        UnaryOp::Exp => return tt_soft::Unary::Exp,
        UnaryOp::Neg => return tt_soft::Unary::Neg,
    };
    tt_soft::Unary::Activation(activation)
}

fn two(op: BinaryOp) -> tt_soft::Binary {
    match op {
        BinaryOp::Add => tt_soft::Binary::Add,
        BinaryOp::Subtract => tt_soft::Binary::Sub,
        BinaryOp::Multiply => tt_soft::Binary::Mul,
        BinaryOp::Divide => tt_soft::Binary::Div,
    }
}
