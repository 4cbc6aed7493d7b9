//! From an op to planned kernel calls on the software device: common part.

use std::sync::Arc;

use tt_soft::plan::{Arrangement, BufferId, Call, Kernel, Operand, Step, run_step};
use tt_soft::{Dtype, PackedWeight};

use super::slot::{Place, Slot, SoftBuffer};
use super::state::{Memory, Shared, State};
use super::{Soft, kernel_error};
use crate::captured::{CapturedOp, CapturedOperand, CapturedSpec};
use crate::device::Input;
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::spec::TensorSpec;

/// A tensor on its way through lowering: its slot, and where it is now.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) slot: Arc<Slot>,
    pub(super) operand: Operand,
    pub(super) whole: bool,
}

impl Source {
    /// The same memory seen in another way.
    pub(super) fn seen_as(&self, operand: Operand) -> Self {
        Self { slot: Arc::clone(&self.slot), operand, whole: false }
    }
}

/// The operands of one op, and the calls that it becomes.
pub(super) struct Lowering<'a> {
    pub(super) op: &'static str,
    shared: &'a Shared,
    state: &'a mut State,
    serial: Option<u64>,
    tensors: Vec<Source>,
    weights: Vec<Arc<PackedWeight>>,
    calls: Vec<Call>,
}

impl Lowering<'_> {
    /// The n-th tensor operand.
    pub(super) fn tensor(&self, index: usize) -> Result<Source> {
        let missing = || TtError::argument(self.op, format!("no operand {index}"), "one");
        self.tensors.get(index).cloned().ok_or_else(missing)
    }

    pub(super) fn tensors(&self) -> Vec<Source> {
        self.tensors.clone()
    }

    pub(super) fn weight(&self) -> Result<Arc<PackedWeight>> {
        self.weights.first().cloned().ok_or_else(|| TtError::argument(self.op, "no weight", "one"))
    }

    /// Memory for a result or for something between.
    pub(super) fn fresh(&mut self, dtype: Dtype, shape: [usize; 4], arrangement: Arrangement) -> Source {
        let bytes = Operand::fresh(BufferId::Recorded(0), dtype, shape, arrangement).1;
        let (place, buffer) = if let Some(active) = &mut self.state.active {
            let index = active.recording.allocate(bytes);
            (Place::Recorded { serial: active.serial, index }, BufferId::Recorded(index))
        } else {
            let id = self.state.heap.allocate(bytes);
            (Place::Heap(id), BufferId::Heap(id))
        };
        let slot = Slot::new(place, Arc::clone(&self.shared.graveyard));
        if let Some(active) = &mut self.state.active {
            active.slots.push(Arc::downgrade(&slot));
        }
        Source { slot, operand: Operand::fresh(buffer, dtype, shape, arrangement).0, whole: true }
    }

    /// Adds a call.
    pub(super) fn call(&mut self, kernel: Kernel, inputs: Vec<Operand>, output: Operand) {
        self.calls.push(Call::new(kernel, inputs, output));
    }

    /// A copy of `x` in memory of its own.
    pub(super) fn copy(&mut self, x: &Source, dtype: Dtype, arrangement: Arrangement) -> Source {
        let out = self.fresh(dtype, x.operand.shape, arrangement);
        self.call(Kernel::Copy, vec![x.operand], out.operand);
        out
    }

    /// `x` under another shape: a view, or a copy where strides cannot say it.
    pub(super) fn reshape(&mut self, x: &Source, shape: [usize; 4]) -> Result<Source> {
        if let Some(operand) = x.operand.reshape(shape) {
            return Ok(x.seen_as(operand));
        }
        let dense = self.copy(x, x.operand.dtype, Arrangement::Dense);
        let operand = dense
            .operand
            .reshape(shape)
            .ok_or_else(|| TtError::shape(self.op, format!("{:?}", x.operand.shape), format!("{shape:?}")))?;
        Ok(dense.seen_as(operand))
    }

    /// `x` as a dense vector of float32, as kernels take weights and biases.
    pub(super) fn vector(&mut self, x: &Source) -> Operand {
        if x.operand.dtype == Dtype::F32 && x.operand.is_dense_vector() {
            return x.operand;
        }
        self.copy(x, Dtype::F32, Arrangement::Rows).operand
    }

    /// Runs or records what was lowered so far as one step.
    fn flush(&mut self, output: Option<Operand>) -> Result<()> {
        let calls = std::mem::take(&mut self.calls);
        let step = match output {
            Some(output) => Step::new(self.op, calls, output),
            None => Step::view(self.op),
        };
        match &mut self.state.active {
            Some(active) => {
                active.recording.push(step);
                Ok(())
            }
            None => run_step(&self.shared.engine, &step, &mut self.state.heap, self.shared.options)
                .map_err(kernel_error(self.op)),
        }
    }

    /// In eager mode a view of a tensor that can change becomes a copy, so that it does not change with it.
    fn settle(&mut self, made: Vec<Source>) -> Result<Vec<Source>> {
        if self.serial.is_some() {
            return Ok(made);
        }
        made.into_iter()
            .map(|source| {
                if !source.slot.is_mutable() {
                    return Ok(source);
                }
                let copy = self.copy(&source, source.operand.dtype, Arrangement::Rows);
                self.flush(Some(copy.operand))?;
                Ok(copy)
            })
            .collect()
    }
}

pub(super) fn dispatch(
    shared: &Shared,
    op: &Op,
    inputs: &[Input<'_, Soft>],
    outputs: &[TensorSpec],
) -> Result<Vec<SoftBuffer>> {
    let mut guard = shared.lock();
    let state = &mut *guard;
    let serial = state.active.as_ref().map(|active| active.serial);
    let name = op.name();
    let (mut tensors, mut weights) = (Vec::new(), Vec::new());
    for input in inputs {
        match input {
            Input::Tensor { buffer, .. } => {
                let operand = buffer.operand(name, serial)?;
                tensors.push(Source { slot: Arc::clone(&buffer.slot), operand, whole: buffer.whole });
            }
            Input::Weight { packed, .. } => weights.push(Arc::clone(&packed.packed)),
        }
    }
    let mut lowering = Lowering { op: name, shared, state, serial, tensors, weights, calls: Vec::new() };
    let made = super::lower_calls::lower(&mut lowering, op, outputs)?;
    let is_view = lowering.calls.is_empty();
    let output = lowering.calls.last().map(|call| call.output);
    // A result that several calls fill part by part is checked as a whole.
    let whole =
        made.first().map(|m| m.operand).filter(|m| output.is_some_and(|o| o.buffer == m.buffer)).or(output);
    lowering.flush(whole)?;
    let made = lowering.settle(made)?;
    for source in &made {
        if matches!(source.slot.place(), Place::Heap(_)) && serial.is_none() {
            source.slot.set_written();
        }
    }
    let buffers: Vec<SoftBuffer> =
        made.into_iter().map(|Source { slot, operand, whole }| SoftBuffer { slot, operand, whole }).collect();
    if state.active.is_some() {
        note(state, op, inputs, &buffers, outputs, is_view);
    }
    Ok(buffers)
}

/// Describes a recorded op.
fn note(
    state: &mut State,
    op: &Op,
    inputs: &[Input<'_, Soft>],
    results: &[SoftBuffer],
    outputs: &[TensorSpec],
    is_view: bool,
) {
    let Some(active) = &mut state.active else { return };
    let operands = inputs
        .iter()
        .map(|input| match input {
            Input::Tensor { buffer, spec } => {
                active.uses(&buffer.slot);
                let memory = active.memory(Memory::Slot(buffer.slot.number));
                CapturedOperand { memory, spec: CapturedSpec::Tensor(**spec) }
            }
            Input::Weight { packed, spec } => {
                let memory = active.memory(Memory::Weight(Arc::as_ptr(&packed.packed).addr()));
                CapturedOperand { memory, spec: CapturedSpec::Weight(**spec) }
            }
        })
        .collect();
    let made = results
        .iter()
        .zip(outputs)
        .map(|(buffer, spec)| CapturedOperand {
            memory: active.memory(Memory::Slot(buffer.slot.number)),
            spec: CapturedSpec::Tensor(*spec),
        })
        .collect();
    let index = active.ops.len();
    active.ops.push(CapturedOp::new(index, op, operands, made, is_view));
    let kept = if active.keep_all {
        results.iter().cloned().zip(outputs.iter().copied()).collect()
    } else {
        Vec::new()
    };
    active.results.push(kept);
}
