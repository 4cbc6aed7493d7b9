//! Plans: what a capture became, and how it is run again and again.

use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Result;
use crate::plan::heap::Heap;
use crate::plan::kernel::fault;
use crate::plan::memory::{Readable, run_call, with_output};
use crate::plan::operand::{BufferId, Operand};
use crate::plan::poison::{self, Finding};
use crate::plan::recording::{PlanOptions, Step};

/// A list of calls whose operands all have their place. Running it allocates nothing and makes no system call but to
/// wake and await the threads of the engine.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<Step>,
    options: PlanOptions,
    arena_bytes: usize,
}

impl Plan {
    pub(super) fn new(steps: Vec<Step>, options: PlanOptions, arena_bytes: usize) -> Self {
        Self { steps, options, arena_bytes }
    }

    /// The ops in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Bytes of the arena that it uses.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Runs everything. `times` gets one duration per op; room for them is made if it is not there.
    ///
    /// # Errors
    /// What a kernel or the checked mode finds.
    pub fn run(&self, engine: &Engine, heap: &mut Heap, times: Option<&mut Vec<Duration>>) -> Result<()> {
        let Some(times) = times else {
            return self.steps.iter().try_for_each(|step| run_step(engine, step, heap, self.options));
        };
        times.clear();
        times.reserve(self.steps.len());
        let mut last = Instant::now();
        for step in &self.steps {
            run_step(engine, step, heap, self.options)?;
            let now = Instant::now();
            times.push(now - last);
            last = now;
        }
        Ok(())
    }
}

/// Runs one op.
///
/// # Errors
/// What a kernel finds; in checked mode, a result that was not written whole, that was computed from padding, or that
/// is NaN although no operand is.
pub fn run_step(engine: &Engine, step: &Step, heap: &mut Heap, options: PlanOptions) -> Result<()> {
    if !options.checked {
        return step.calls.iter().try_for_each(|call| run_call(engine, call, heap));
    }
    for call in &step.calls {
        // Memory that several calls share is poisoned before the first of them.
        if step.output.is_none_or(|whole| whole.buffer != call.output.buffer) {
            poison_buffer(heap, &call.output)?;
        }
    }
    if let Some(output) = step.output.filter(|_| !step.calls.is_empty()) {
        poison_buffer(heap, &output)?;
        step.calls.iter().try_for_each(|call| run_call(engine, call, heap))?;
        check(step, &output, heap)?;
    }
    step.dead.iter().try_for_each(|operand| poison_buffer(heap, operand))
}

fn check(step: &Step, output: &Operand, heap: &Heap) -> Result<()> {
    let readable = Readable::all(heap);
    let bytes = readable.bytes(output.buffer).unwrap_or_default();
    match poison::inspect(bytes, output) {
        None => Ok(()),
        Some(Finding::Poison(at)) => Err(fault(
            step.op,
            format!("element {at:?} of the result was not written, or computed from padding"),
        )),
        Some(Finding::Outside(at)) => Err(fault(
            step.op,
            format!("element {at} of the buffer was written, which belongs to no element of the result"),
        )),
        Some(Finding::Nan(at)) => {
            let special = step.calls.iter().flat_map(|call| &call.inputs).any(|input| {
                readable.bytes(input.buffer).is_some_and(|bytes| poison::has_special(bytes, input))
            });
            if special {
                return Ok(());
            }
            Err(fault(
                step.op,
                format!("element {at:?} of the result is NaN although all operands are finite"),
            ))
        }
    }
}

fn poison_buffer(heap: &mut Heap, operand: &Operand) -> Result<()> {
    with_output(operand, heap, |bytes, _| {
        poison::fill(bytes, operand.dtype);
        Ok(())
    })
}

/// Poisons what belongs to no element of `operand` in its buffer.
pub fn poison_padding(heap: &mut Heap, operand: &Operand) {
    if let BufferId::Heap(id) = operand.buffer {
        poison::fill_padding(heap.bytes_mut(id), operand);
    }
}
