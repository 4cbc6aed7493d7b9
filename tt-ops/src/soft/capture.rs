//! Traces of the software device: from a recording to a plan, and its replay.

use std::sync::Arc;
use std::time::Duration;

use tt_soft::plan::{BufferId, Plan};

use super::kernel_error;
use super::slot::{Place, Slot, SoftBuffer};
use super::state::Shared;
use crate::captured::CapturedOps;
use crate::error::Result;
use crate::spec::TensorSpec;

/// A captured trace of the software device.
#[derive(Debug)]
pub struct SoftTrace {
    plan: Plan,
    /// Slots from outside that the plan reads.
    externals: Vec<Arc<Slot>>,
    /// Slots that the plan writes and that can be read between replays.
    kept: Vec<Arc<Slot>>,
    ops: CapturedOps,
    results: Vec<Vec<(SoftBuffer, TensorSpec)>>,
}

impl SoftTrace {
    pub(super) fn ops(&self) -> &CapturedOps {
        &self.ops
    }

    pub(super) fn results(&self) -> Vec<Vec<(SoftBuffer, TensorSpec)>> {
        self.results.clone()
    }

    /// The execution plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

pub(super) fn end(shared: &Shared) -> Result<SoftTrace> {
    let (mut state, active) = shared.end()?;
    // A slot whose handle is still alive stays readable: it gets memory of its own.
    let mut indices = Vec::new();
    let mut kept = Vec::new();
    for (index, slot) in active.slots.iter().enumerate() {
        let Some(slot) = slot.upgrade() else { continue };
        if matches!(slot.place(), Place::Recorded { .. }) {
            indices.push(index as u32);
            kept.push(slot);
        }
    }
    let (plan, own) = active.recording.finish(&indices, shared.options, &mut state.heap);
    for (slot, id) in kept.iter().zip(own) {
        slot.set_place(Place::Heap(id));
        slot.set_mutable();
    }
    let ops = CapturedOps { ops: active.ops };
    Ok(SoftTrace { plan, externals: active.externals, kept, ops, results: active.results })
}

pub(super) fn abort(shared: &Shared) {
    let Ok((_state, active)) = shared.end() else { return };
    for slot in active.slots.iter().filter_map(std::sync::Weak::upgrade) {
        slot.set_place(Place::Lost);
    }
}

pub(super) fn replay(shared: &Shared, trace: &SoftTrace, times: Option<&mut Vec<Duration>>) -> Result<()> {
    const OP: &str = "execute_trace";
    let mut state = shared.lock_outside_capture("a replay")?;
    for slot in &trace.externals {
        let BufferId::Heap(_) = slot.buffer(OP, None)? else { continue };
    }
    trace.plan.run(&shared.engine, &mut state.heap, times).map_err(kernel_error(OP))?;
    for slot in &trace.kept {
        slot.set_written();
    }
    Ok(())
}
