//! What a software device holds: engine, heap, and the capture that is going on.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use tt_soft::Engine;
use tt_soft::plan::{Heap, PlanOptions, Recording};

use super::slot::{Graveyard, Place, Slot, SoftBuffer};
use crate::captured::CapturedOp;
use crate::error::{Result, TtError};
use crate::spec::TensorSpec;

/// Shared by all handles of one device.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) options: PlanOptions,
    pub(super) graveyard: Graveyard,
    state: Mutex<State>,
    /// Signalled when a capture ends.
    idle: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) heap: Heap,
    pub(super) active: Option<Active>,
    serial: u64,
}

/// A capture that is going on.
#[derive(Debug)]
pub(super) struct Active {
    thread: ThreadId,
    pub(super) serial: u64,
    pub(super) keep_all: bool,
    pub(super) recording: Recording,
    /// Slots of recorded buffers, by number.
    pub(super) slots: Vec<std::sync::Weak<Slot>>,
    /// Slots from outside that the trace uses.
    pub(super) externals: Vec<Arc<Slot>>,
    pub(super) ops: Vec<CapturedOp>,
    /// Results of all ops, where they shall be kept.
    pub(super) results: Vec<Vec<(SoftBuffer, TensorSpec)>>,
    memories: HashMap<Memory, usize>,
}

/// What a number in captured ops stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Memory {
    /// A slot, by its number.
    Slot(usize),
    /// A packed weight, by its address (the recording holds it).
    Weight(usize),
}

impl Active {
    /// A small number for some memory.
    pub(super) fn memory(&mut self, memory: Memory) -> usize {
        let next = self.memories.len();
        *self.memories.entry(memory).or_insert(next)
    }

    /// Remembers a slot from outside.
    pub(super) fn uses(&mut self, slot: &Arc<Slot>) {
        let external = matches!(slot.place(), Place::Heap(_));
        if external && !self.externals.iter().any(|known| Arc::ptr_eq(known, slot)) {
            self.externals.push(Arc::clone(slot));
        }
    }
}

impl Shared {
    pub(super) fn new(engine: Engine, options: PlanOptions) -> Self {
        let (state, idle) = (Mutex::default(), Condvar::new());
        Self { engine, options, graveyard: Graveyard::default(), state, idle }
    }

    /// The state, for this thread alone: waits while another thread captures.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let this = std::thread::current().id();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |state: &mut State| state.active.as_ref().is_some_and(|active| active.thread != this);
        let mut state = self.idle.wait_while(state, busy).unwrap_or_else(PoisonError::into_inner);
        let mut graveyard = self.graveyard.lock().unwrap_or_else(PoisonError::into_inner);
        for id in graveyard.drain(..) {
            state.heap.free(id);
        }
        drop(graveyard);
        state
    }

    /// [`lock`](Self::lock) for what may not happen during a capture.
    pub(super) fn lock_outside_capture(&self, what: &str) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.active.is_some() {
            return Err(TtError::Capture(format!("{what} while a trace is being captured; do it before")));
        }
        Ok(state)
    }

    pub(super) fn begin(&self, keep_all: bool) -> Result<()> {
        let mut state = self.lock_outside_capture("a capture")?;
        state.serial += 1;
        let serial = state.serial;
        state.active = Some(Active {
            thread: std::thread::current().id(),
            serial,
            keep_all,
            recording: Recording::new(),
            slots: Vec::new(),
            externals: Vec::new(),
            ops: Vec::new(),
            results: Vec::new(),
            memories: HashMap::new(),
        });
        Ok(())
    }

    /// Ends the capture of this thread; other threads may go on once the returned lock is released.
    pub(super) fn end(&self) -> Result<(MutexGuard<'_, State>, Active)> {
        let mut state = self.lock();
        let active = state.active.take();
        self.idle.notify_all();
        match active {
            Some(active) => Ok((state, active)),
            None => Err(TtError::Capture("no capture to end".into())),
        }
    }
}
