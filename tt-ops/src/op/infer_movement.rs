//! Operand checks and output shapes of ops that only move values.

use super::infer::{Operands, OutputSpecs};
use crate::error::{Result, TtError};
use crate::shape::Shape;

pub(super) fn concat(operands: &Operands<'_>, dim: usize) -> Result<OutputSpecs> {
    let op = operands.op;
    let all = operands.all()?;
    let Some((first, rest)) = all.split_first() else {
        return Err(TtError::argument(op, "no operands", "at least one"));
    };
    let shapes = || all.iter().map(|s| s.shape.to_string()).collect::<Vec<_>>().join(", ");
    if dim >= first.shape.rank() {
        return Err(TtError::argument(op, format!("dim {dim}"), format!("less than {}", first.shape.rank())));
    }
    let mut extent = first.shape.dims()[dim];
    for spec in rest {
        if spec.dtype != first.dtype {
            return Err(TtError::dtype(op, format!("{} and {}", first.dtype, spec.dtype), "one type"));
        }
        if spec.layout != first.layout {
            return Err(TtError::Layout {
                op,
                got: spec.layout.to_string(),
                wanted: first.layout.to_string(),
            });
        }
        let fits = spec.shape.rank() == first.shape.rank()
            && spec.shape.with_dim(dim, 0) == first.shape.with_dim(dim, 0);
        if !fits {
            return Err(TtError::shape(op, shapes(), format!("equal extents but dim {dim}")));
        }
        extent += spec.shape.dims()[dim];
    }
    Ok(vec![first.with_shape(first.shape.with_dim(dim, extent))])
}

pub(super) fn slice(
    operands: &Operands<'_>,
    begins: &[usize],
    ends: &[usize],
    step: &[usize],
) -> Result<OutputSpecs> {
    let op = operands.op;
    let x = operands.tensor(0)?;
    let rank = x.shape.rank();
    let fits = [begins, ends, step].iter().all(|v| v.len() == rank)
        && (0..rank).all(|i| begins[i] < ends[i] && ends[i] <= x.shape.dims()[i] && step[i] > 0);
    if !fits {
        let got = format!("x {}, begins {begins:?}, ends {ends:?}, step {step:?}", x.shape);
        return Err(TtError::argument(op, got, "begin < end ≤ extent and step ≥ 1 for each dim"));
    }
    let dims: Vec<usize> = (0..rank).map(|i| (ends[i] - begins[i]).div_ceil(step[i])).collect();
    let shape = Shape::new(&dims).ok_or_else(|| TtError::shape(op, x.shape.to_string(), "rank 1 to 4"))?;
    Ok(vec![x.with_shape(shape)])
}

pub(super) fn reshape(operands: &Operands<'_>, shape: Shape) -> Result<OutputSpecs> {
    let x = operands.tensor(0)?;
    if x.shape.volume() != shape.volume() {
        let got = format!("x {} as {shape}", x.shape);
        return Err(TtError::shape(operands.op, got, format!("{} elements", x.shape.volume())));
    }
    Ok(vec![x.with_shape(shape)])
}

pub(super) fn permute(operands: &Operands<'_>, dims: &[usize]) -> Result<OutputSpecs> {
    let op = operands.op;
    let x = operands.tensor(0)?;
    let mut sorted = dims.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.shape.rank()) {
        let got = format!("x {}, dims {dims:?}", x.shape);
        return Err(TtError::argument(op, got, "each dim once"));
    }
    let extents: Vec<usize> = dims.iter().map(|&d| x.shape.dims()[d]).collect();
    let shape = Shape::new(&extents).ok_or_else(|| TtError::shape(op, x.shape.to_string(), "rank 1 to 4"))?;
    Ok(vec![x.with_shape(shape)])
}
