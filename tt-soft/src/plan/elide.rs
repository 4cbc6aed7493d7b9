//! Concatenation without copies: a result that is only copied into a part of a larger buffer is written there at once.
//!
//! It is possible where the part has the strides of the result, so that all its views move by one constant: rows of one
//! batch entry. The copy disappears; nothing else changes.

use crate::plan::kernel::Kernel;
use crate::plan::operand::{BufferId, Operand};
use crate::plan::recording::Step;

/// Moves what can be moved. `kept` says which recorded buffers are read from outside and must stay whole.
pub(super) fn elide_copies(steps: &mut [Step], kept: &dyn Fn(u32) -> bool) {
    for at in 0..steps.len() {
        let mut index = 0;
        while let Some(call) = steps[at].calls.get(index) {
            let Some(change) = candidate(steps, at, index, kept) else {
                index += 1;
                continue;
            };
            debug_assert!(matches!(call.kernel, Kernel::Copy));
            steps[at].calls.remove(index);
            for operand in operands(steps) {
                change.apply(operand);
            }
        }
    }
}

/// A buffer that becomes part of another.
#[derive(Clone, Copy)]
struct Change {
    from: BufferId,
    to: BufferId,
    shift: usize,
}

impl Change {
    fn apply(self, operand: &mut Operand) {
        if operand.buffer == self.from {
            operand.buffer = self.to;
            operand.offset += self.shift;
        }
    }

    fn moves(self, buffer: BufferId) -> BufferId {
        if buffer == self.from { self.to } else { buffer }
    }
}

/// The change that makes call `index` of step `at` needless, if there is one.
fn candidate(steps: &[Step], at: usize, index: usize, kept: &dyn Fn(u32) -> bool) -> Option<Change> {
    let call = steps[at].calls.get(index)?;
    let (Kernel::Copy, [source]) = (&call.kernel, call.inputs.as_slice()) else { return None };
    let (BufferId::Recorded(from), BufferId::Recorded(_)) = (source.buffer, call.output.buffer) else {
        return None;
    };
    let written: Vec<&Step> = steps
        .iter()
        .filter(|step| step.calls.iter().any(|call| call.output.buffer == source.buffer))
        .collect();
    // One op writes it, whole, and the copy reads it whole.
    let [producer] = written.as_slice() else { return None };
    let whole = producer.output.is_some_and(|o| o.buffer == source.buffer && o.same_place(source));
    let moved = Operand { offset: source.offset, ..call.output };
    if kept(from) || !whole || source.offset != 0 || !moved.same_place(source) {
        return None;
    }
    let change = Change { from: source.buffer, to: call.output.buffer, shift: call.output.offset };
    // No call may read the buffer that it writes.
    let clash = steps.iter().enumerate().any(|(step_at, step)| {
        step.calls.iter().enumerate().any(|(call_at, call)| {
            let out = change.moves(call.output.buffer);
            let gone = (step_at, call_at) == (at, index);
            !gone && out == change.to && call.inputs.iter().any(|input| change.moves(input.buffer) == out)
        })
    });
    (!clash).then_some(change)
}

fn operands(steps: &mut [Step]) -> impl Iterator<Item = &mut Operand> {
    steps.iter_mut().flat_map(|step| {
        let calls = step.calls.iter_mut().flat_map(|call| call.inputs.iter_mut().chain([&mut call.output]));
        calls.chain(step.output.iter_mut())
    })
}
