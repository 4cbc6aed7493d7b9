//! Values between host slices and buffers.

use crate::block_float::BlockFormat;
use crate::engine::Engine;
use crate::error::Result;
use crate::movement::copy;
use crate::plan::heap::Heap;
use crate::plan::memory::{Readable, view_mut, with_output};
use crate::plan::operand::Operand;
use crate::plan::quantize::quantize;
use crate::view::{Elements, ElementsMut, View, ViewMut};

/// Writes row-major host values into an operand, converting; with `format`, rounded to it on the way.
///
/// # Errors
/// If there are too few values.
pub fn copy_from_host(
    engine: &Engine,
    values: Elements<'_>,
    format: Option<BlockFormat>,
    operand: &Operand,
    heap: &mut Heap,
) -> Result<()> {
    let source = View::contiguous(values, operand.shape)?;
    with_output(operand, heap, |bytes, _| {
        let mut out = view_mut(bytes, operand)?;
        match format {
            Some(format) => quantize(format, &source, &mut out),
            None => copy(engine, &source, &mut out),
        }
    })
}

/// Reads an operand as row-major host values, converting.
///
/// # Errors
/// If there is too little room.
pub fn copy_to_host(engine: &Engine, operand: &Operand, heap: &Heap, values: ElementsMut<'_>) -> Result<()> {
    let source = Readable::all(heap).view(operand)?;
    copy(engine, &source, &mut ViewMut::contiguous(values, operand.shape)?)
}
