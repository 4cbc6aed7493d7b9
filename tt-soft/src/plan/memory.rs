//! From operands to views: the bytes of one call's inputs, read while its output is written.

use bytemuck::{Pod, try_cast_slice, try_cast_slice_mut};
use half::bf16;

use crate::engine::Engine;
use crate::error::Result;
use crate::plan::heap::Heap;
use crate::plan::kernel::fault;
use crate::plan::operand::{BufferId, Operand};
use crate::plan::recording::Call;
use crate::view::{Dtype, View, ViewMut};

const OP: &str = "plan";

/// The bytes that may be read: all of the heap but the output's buffer, and the arena before and after the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Readable<'a> {
    heap: &'a Heap,
    before: &'a [u8],
    after: &'a [u8],
    after_start: usize,
}

impl<'a> Readable<'a> {
    /// Everything.
    pub(super) fn all(heap: &'a Heap) -> Self {
        Self { heap, before: heap.arena(), after: &[], after_start: usize::MAX }
    }

    pub(super) fn bytes(&self, buffer: BufferId) -> Option<&'a [u8]> {
        match buffer {
            BufferId::Heap(id) => Some(self.heap.bytes(id)).filter(|bytes| !bytes.is_empty()),
            BufferId::Arena { start, len } => match start.checked_sub(self.after_start) {
                Some(start) => self.after.get(start..start.checked_add(len)?),
                None => self.before.get(start..start.checked_add(len)?),
            },
            BufferId::Recorded(_) => None,
        }
    }

    /// A view of an operand.
    pub(super) fn view(&self, operand: &Operand) -> Result<View<'a>> {
        let bytes =
            self.bytes(operand.buffer).ok_or_else(|| fault(OP, format!("{operand:?} cannot be read")))?;
        match operand.dtype {
            Dtype::F32 => View::new(elements::<f32>(bytes, operand)?, operand.shape, operand.strides),
            Dtype::Bf16 => View::new(elements::<bf16>(bytes, operand)?, operand.shape, operand.strides),
            Dtype::U32 => View::new(elements::<u32>(bytes, operand)?, operand.shape, operand.strides),
            Dtype::I32 => View::new(elements::<i32>(bytes, operand)?, operand.shape, operand.strides),
        }
    }
}

fn elements<'a, T: Pod>(bytes: &'a [u8], operand: &Operand) -> Result<&'a [T]> {
    let whole: Option<&[T]> = try_cast_slice(bytes).ok();
    whole
        .and_then(|all| all.get(operand.offset..))
        .ok_or_else(|| fault(OP, format!("{operand:?} lies outside its buffer")))
}

fn elements_mut<'a, T: Pod>(bytes: &'a mut [u8], operand: &Operand) -> Result<&'a mut [T]> {
    let whole: Option<&mut [T]> = try_cast_slice_mut(bytes).ok();
    whole
        .and_then(|all| all.get_mut(operand.offset..))
        .ok_or_else(|| fault(OP, format!("{operand:?} lies outside its buffer")))
}

/// A view of an operand in its buffer's bytes, to write.
pub(super) fn view_mut<'a>(bytes: &'a mut [u8], operand: &Operand) -> Result<ViewMut<'a>> {
    let (shape, strides) = (operand.shape, operand.strides);
    match operand.dtype {
        Dtype::F32 => ViewMut::new(elements_mut::<f32>(bytes, operand)?, shape, strides),
        Dtype::Bf16 => ViewMut::new(elements_mut::<bf16>(bytes, operand)?, shape, strides),
        Dtype::U32 => ViewMut::new(elements_mut::<u32>(bytes, operand)?, shape, strides),
        Dtype::I32 => ViewMut::new(elements_mut::<i32>(bytes, operand)?, shape, strides),
    }
}

/// The inputs of one call.
#[derive(Debug)]
pub(super) struct Inputs<'a> {
    readable: Readable<'a>,
    operands: &'a [Operand],
}

impl<'a> Inputs<'a> {
    fn operand(&self, index: usize) -> Result<&'a Operand> {
        self.operands.get(index).ok_or_else(|| fault(OP, format!("no operand {index}")))
    }

    pub(super) fn view(&self, index: usize) -> Result<View<'a>> {
        self.readable.view(self.operand(index)?)
    }

    /// A dense vector of float32.
    pub(super) fn vector(&self, index: usize) -> Result<&'a [f32]> {
        let operand = self.operand(index)?;
        let bytes = self.readable.bytes(operand.buffer);
        let bytes = bytes.ok_or_else(|| fault(OP, format!("{operand:?} cannot be read")))?;
        let is_vector = operand.dtype == Dtype::F32 && operand.is_dense_vector();
        elements::<f32>(bytes, operand)?
            .get(..operand.shape[3])
            .filter(|_| is_vector)
            .ok_or_else(|| fault(OP, format!("{operand:?} is no dense float32 vector")))
    }
}

/// Runs `body` with an operand's buffer, to write, and everything else, to read.
pub(super) fn with_output<R>(
    output: &Operand,
    heap: &mut Heap,
    body: impl FnOnce(&mut [u8], Readable<'_>) -> Result<R>,
) -> Result<R> {
    match output.buffer {
        BufferId::Heap(id) => {
            let mut buffer = heap.take(id);
            let result = body(buffer.as_bytes_mut(), Readable::all(heap));
            heap.put_back(id, buffer);
            result
        }
        BufferId::Arena { start, len } => {
            let mut arena = heap.take_arena();
            let split = arena.as_bytes_mut().split_at_mut_checked(start);
            let split = split.and_then(|(before, rest)| Some((before, rest.split_at_mut_checked(len)?)));
            let result = match split {
                Some((before, (out, after))) => {
                    body(out, Readable { heap, before, after, after_start: start + len })
                }
                None => Err(fault(OP, format!("{output:?} lies outside the arena"))),
            };
            heap.put_back_arena(arena);
            result
        }
        BufferId::Recorded(_) => Err(fault(OP, format!("{output:?} was not placed"))),
    }
}

/// Runs one call. Allocates nothing unless it fails.
///
/// # Errors
/// What the kernel finds; operands that do not lie in their buffers.
pub(crate) fn run_call(engine: &Engine, call: &Call, heap: &mut Heap) -> Result<()> {
    with_output(&call.output, heap, |out, readable| {
        let inputs = Inputs { readable, operands: &call.inputs };
        call.kernel.run(engine, &inputs, call.in_place, view_mut(out, &call.output)?)
    })
}
