//! Rounding to the values of a block format, along rows.

use crate::block_float::{BlockFormat, GROUP, quantize_group};
use crate::error::Result;
use crate::plan::kernel::fault;
use crate::view::{Elements, ElementsMut, View, ViewMut};

/// `out` becomes the nearest values of `format`; each run of 16 columns shares an exponent. Every value of both
/// formats is a bfloat16.
///
/// # Errors
/// If shapes differ, or dtypes are not float32 or bfloat16.
pub(super) fn quantize(format: BlockFormat, x: &View<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    const OP: &str = "typecast";
    let shape = x.shape();
    if shape != out.shape() {
        return Err(fault(OP, format!("{shape:?} to {:?}", out.shape())));
    }
    let (from, to) = (x.strides(), out.strides());
    let place = |strides: [usize; 4], index: [usize; 4]| (0..4).map(|d| strides[d] * index[d]).sum::<usize>();
    for row in 0..shape[0] * shape[1] * shape[2] {
        let index = |column| [row / (shape[1] * shape[2]), row / shape[2] % shape[1], row % shape[2], column];
        for start in (0..shape[3]).step_by(GROUP) {
            let columns = start..(start + GROUP).min(shape[3]);
            let mut values = [0f32; GROUP];
            for column in columns.clone() {
                let at = place(from, index(column));
                values[column - start] = match x.elements() {
                    Elements::F32(v) => v[at],
                    Elements::Bf16(v) => v[at].to_f32(),
                    _ => return Err(fault(OP, "integers to a block format")),
                };
            }
            let (exponent, elements) = quantize_group(format, &values);
            for column in columns {
                let at = place(to, index(column));
                let value = format.value(exponent, elements[column - start]);
                match out.elements_mut() {
                    ElementsMut::F32(v) => v[at] = value,
                    ElementsMut::Bf16(v) => v[at] = half::bf16::from_f32(value),
                    _ => return Err(fault(OP, "a block format to integers")),
                }
            }
        }
    }
    Ok(())
}
