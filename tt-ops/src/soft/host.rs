//! Values between host and software device.

use std::sync::Arc;

use tt_soft::plan::{Arrangement, BufferId, Operand, copy_from_host, copy_to_host, poison_padding};
use tt_soft::{Engine, PackedWeight, View, WeightFormat};

use super::slot::{Place, Slot, SoftBuffer};
use super::state::{Shared, State};
use super::{SoftWeight, kernel_error, storage};
use crate::dtype::{DataType, HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::spec::{TensorSpec, WeightOrder, WeightSpec};

const WRITE: &str = "copy_host_to_device_tensor";
const PACK: &str = "pack";

pub(super) fn upload(shared: &Shared, spec: &TensorSpec, data: HostSlice<'_>) -> Result<SoftBuffer> {
    let mut state = shared.lock_outside_capture("making a tensor")?;
    let shape = spec.shape.as_rank4();
    let whole = |buffer| Operand::fresh(buffer, storage(spec.dtype), shape, Arrangement::Rows);
    let id = state.heap.allocate(whole(BufferId::Recorded(0)).1);
    let operand = whole(BufferId::Heap(id)).0;
    let slot = Slot::new(Place::Heap(id), Arc::clone(&shared.graveyard));
    if shared.options.checked {
        poison_padding(&mut state.heap, &operand);
    }
    fill(shared, &mut state, &operand, spec, data)?;
    slot.set_mutable();
    slot.set_written();
    Ok(SoftBuffer { slot, operand, whole: true })
}

pub(super) fn write(
    shared: &Shared,
    buffer: &SoftBuffer,
    spec: &TensorSpec,
    data: HostSlice<'_>,
) -> Result<()> {
    let mut state = shared.lock_outside_capture("writing host values")?;
    if !buffer.whole {
        return Err(TtError::memory(WRITE, "is a view of another; write to that one"));
    }
    if !buffer.slot.is_mutable() {
        return Err(TtError::memory(WRITE, "is the result of an op; write to one made from host values"));
    }
    let operand = buffer.operand.within(match buffer.slot.place() {
        Place::Heap(id) => BufferId::Heap(id),
        _ => buffer.slot.buffer(WRITE, None)?,
    });
    fill(shared, &mut state, &operand, spec, data)?;
    buffer.slot.set_written();
    Ok(())
}

fn fill(
    shared: &Shared,
    state: &mut State,
    operand: &Operand,
    spec: &TensorSpec,
    data: HostSlice<'_>,
) -> Result<()> {
    let format = block_format(spec.dtype);
    let heap = &mut state.heap;
    match data {
        HostSlice::F32(v) => copy_from_host(&shared.engine, v.into(), format, operand, heap),
        HostSlice::Bf16(v) => copy_from_host(&shared.engine, v.into(), format, operand, heap),
        HostSlice::U32(v) => copy_from_host(&shared.engine, v.into(), format, operand, heap),
        HostSlice::I32(v) => copy_from_host(&shared.engine, v.into(), format, operand, heap),
    }
    .map_err(kernel_error(WRITE))
}

pub(super) fn read(shared: &Shared, buffer: &SoftBuffer, out: HostSliceMut<'_>) -> Result<()> {
    const OP: &str = "to_vector";
    let state = shared.lock_outside_capture("reading a tensor")?;
    let operand = buffer.operand(OP, None)?;
    let heap = &state.heap;
    match out {
        HostSliceMut::F32(v) => copy_to_host(&shared.engine, &operand, heap, v.into()),
        HostSliceMut::Bf16(v) => copy_to_host(&shared.engine, &operand, heap, v.into()),
        HostSliceMut::U32(v) => copy_to_host(&shared.engine, &operand, heap, v.into()),
        HostSliceMut::I32(v) => copy_to_host(&shared.engine, &operand, heap, v.into()),
    }
    .map_err(kernel_error(OP))
}

/// The format whose values a tensor of this type is rounded to.
pub(super) fn block_format(dtype: DataType) -> Option<tt_soft::block_float::BlockFormat> {
    match dtype {
        DataType::Bfloat8B => Some(tt_soft::block_float::BlockFormat::Bfp8B),
        DataType::Bfloat4B => Some(tt_soft::block_float::BlockFormat::Bfp4B),
        _ => None,
    }
}

pub(super) fn pack(shared: &Shared, spec: &WeightSpec, parts: &[HostSlice<'_>]) -> Result<SoftWeight> {
    let _state = shared.lock_outside_capture("packing a weight")?;
    let format = weight_format(spec)?;
    let order = match spec.order {
        WeightOrder::OutIn => tt_soft::WeightOrder::OutIn,
        WeightOrder::InOut => tt_soft::WeightOrder::InOut,
    };
    let views: Vec<View<'_>> = parts
        .iter()
        .map(|part| {
            let n = part.len() / spec.k.max(1);
            let shape = if spec.order == WeightOrder::OutIn { [1, 1, n, spec.k] } else { [1, 1, spec.k, n] };
            match *part {
                HostSlice::F32(v) => View::contiguous(v, shape),
                HostSlice::Bf16(v) => View::contiguous(v, shape),
                HostSlice::U32(v) => View::contiguous(v, shape),
                HostSlice::I32(v) => View::contiguous(v, shape),
            }
            .map_err(kernel_error(PACK))
        })
        .collect::<Result<_>>()?;
    let packed = PackedWeight::pack(&shared.engine, &views, order, format).map_err(kernel_error(PACK))?;
    Ok(SoftWeight { packed: Arc::new(packed) })
}

/// The packed weight that `make` makes on the engine.
pub(super) fn unpack(
    shared: &Shared,
    spec: &WeightSpec,
    make: impl FnOnce(&Engine) -> tt_soft::Result<PackedWeight>,
) -> Result<SoftWeight> {
    let _state = shared.lock_outside_capture("loading a weight")?;
    let packed = make(&shared.engine).map_err(kernel_error(PACK))?;
    if (packed.k(), packed.n(), packed.format()) != (spec.k, spec.n, weight_format(spec)?) {
        let got = format!("{} [{}, {}]", packed.format().name(), packed.k(), packed.n());
        return Err(TtError::shape(PACK, got, spec.to_string()));
    }
    Ok(SoftWeight { packed: Arc::new(packed) })
}

fn weight_format(spec: &WeightSpec) -> Result<WeightFormat> {
    match spec.dtype {
        DataType::Float32 => Ok(WeightFormat::F32),
        DataType::Bfloat16 => Ok(WeightFormat::Bf16),
        DataType::Bfloat8B => Ok(WeightFormat::Bfp8B),
        DataType::Bfloat4B => Ok(WeightFormat::Bfp4B),
        DataType::Uint32 | DataType::Int32 => {
            Err(TtError::dtype(PACK, spec.dtype.to_string(), "a float type"))
        }
    }
}
