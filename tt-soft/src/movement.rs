//! Data movement: `copy` between views of any layout and dtype, `embedding` of ids.

use crate::engine::{Engine, Need};
use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::matmul::check_float;
use crate::rows::CHUNK;
use crate::view::{Dtype, RawView, RawViewMut, View, ViewMut};

/// Copies x to out, converting where the dtypes differ. With views this is concat, slice, permute and typecast.
///
/// float32 to bfloat16 rounds to nearest even; a float to an integer truncates and saturates, NaN becomes 0; an integer of
/// more than 24 bits is rounded on its way to a float. Between equal dtypes, and between uint32 and int32, bits are kept.
///
/// # Errors
/// If the shapes differ.
pub fn copy(engine: &Engine, x: &View<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    let shape = x.shape();
    if out.shape() != shape {
        return Err(Error::Shape { op: "copy", what: "out", got: out.shape().into(), wanted: shape.into() });
    }
    if out.is_empty() {
        return Ok(());
    }
    let (x, out, kernels) = (x.raw(), out.raw(), engine.kernels());
    let need = Need { jobs: x.geometry.rows(), work: x.geometry.len(), floats: 0 };
    let integers = |dtype| matches!(dtype, Dtype::U32 | Dtype::I32);
    let keep_bits = x.dtype == out.dtype || integers(x.dtype) && integers(out.dtype);
    engine.session().run(need, &|rows, _| {
        for row in rows {
            // SAFETY: `row` is a row of both views, and each row of out has one writer.
            unsafe {
                if keep_bits {
                    copy_bits(&x, &out, row, row);
                } else {
                    convert(kernels, &x, &out, row);
                }
            }
        }
    })
}

/// # Safety
/// The rows exist and have the same length; the row of out is this thread's alone.
unsafe fn copy_bits(x: &RawView, out: &RawViewMut, from: usize, to: usize) {
    let width = x.geometry.shape[3];
    let (source, target) = (x.geometry.row_start(from), out.geometry.row_start(to));
    let dense = x.geometry.dense_rows() && out.geometry.dense_rows();
    let (from, to) = (x.geometry.strides[3], out.geometry.strides[3]);
    // SAFETY: views were checked when they were made: all elements of a row lie in the buffer, aligned as their type.
    unsafe {
        match (x.dtype.bytes(), dense) {
            (size, true) => {
                std::ptr::copy(x.ptr.add(source * size), out.ptr.add(target * size), width * size);
            }
            (2, false) => {
                let (x, out) = (x.element::<u16>(source), out.element::<u16>(target));
                (0..width).for_each(|i| *out.add(i * to) = *x.add(i * from));
            }
            (_, false) => {
                let (x, out) = (x.element::<u32>(source), out.element::<u32>(target));
                (0..width).for_each(|i| *out.add(i * to) = *x.add(i * from));
            }
        }
    }
}

/// # Safety
/// As [`copy_bits`].
unsafe fn convert(kernels: &Kernels, x: &RawView, out: &RawViewMut, row: usize) {
    let width = x.geometry.shape[3];
    let mut buf = [0f32; CHUNK];
    for start in (0..width).step_by(CHUNK) {
        let buf = &mut buf[..CHUNK.min(width - start)];
        // SAFETY: the caller's promise.
        unsafe {
            x.load(kernels, row, start, buf);
            out.store(kernels, row, start, buf);
        }
    }
}

/// `out[b, s, :] = table[ids[b, s], :]`.
///
/// ids is [1, 1, B, S] uint32, table [1, 1, V, E] and out [1, B, S, E] in float32 or bfloat16.
///
/// # Errors
/// If shapes or dtypes do not fit, or an id is not below V.
pub fn embedding(engine: &Engine, ids: &View<'_>, table: &View<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    const OP: &str = "embedding";
    let ([_, _, batch, length], [_, _, vocabulary, width]) = (ids.shape(), table.shape());
    for (what, shape) in [("ids", ids.shape()), ("table", table.shape())] {
        if shape[..2] != [1, 1] {
            let wanted = vec![1, 1, shape[2], shape[3]];
            return Err(Error::Shape { op: OP, what, got: shape.into(), wanted });
        }
    }
    if out.shape() != [1, batch, length, width] {
        let wanted = vec![1, batch, length, width];
        return Err(Error::Shape { op: OP, what: "out", got: out.shape().into(), wanted });
    }
    if ids.dtype() != Dtype::U32 {
        return Err(Error::Dtype { op: OP, what: "ids", got: ids.dtype(), wanted: "uint32" });
    }
    check_float(OP, "table", table.dtype())?;
    check_float(OP, "out", out.dtype())?;
    if out.is_empty() {
        return Ok(());
    }
    let (ids, table, out, kernels) = (ids.raw(), table.raw(), out.raw(), engine.kernels());
    let id = move |index: usize| {
        let ids = &ids;
        let at = ids.geometry.row_start(index / length) + index % length * ids.geometry.strides[3];
        // SAFETY: `index < batch * length`, so the element is inside the view.
        unsafe { *ids.element::<u32>(at) as usize }
    };
    if let Some(got) = (0..batch * length).map(id).find(|&id| id >= vocabulary) {
        return Err(Error::Range { op: OP, what: "id", got, wanted: format!("below {vocabulary}") });
    }
    let need = Need { jobs: batch * length, work: out.geometry.len(), floats: width };
    engine.session().run(need, &|rows, buf| {
        for row in rows {
            // SAFETY: ids were checked against the table, and each row of out has one writer.
            unsafe {
                if table.dtype == out.dtype {
                    copy_bits(&table, &out, id(row), row);
                } else {
                    table.load(kernels, id(row), 0, buf);
                    out.store(kernels, row, 0, buf);
                }
            }
        }
    })
}

#[cfg(test)]
#[path = "movement_tests.rs"]
mod tests;
