//! Memory of a software tensor: a slot that handles share, and the part of it that a tensor names.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tt_soft::plan::{BufferId, HeapId, Operand};

use crate::error::{Result, TtError};

/// Buffers whose last handle is gone, to be given back at the next use of the device.
pub(super) type Graveyard = Arc<Mutex<Vec<HeapId>>>;

/// Where a slot's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A buffer of its own.
    Heap(HeapId),
    /// Number `index` of the capture `serial`, not placed yet.
    Recorded { serial: u64, index: u32 },
    /// Given back although handles live on.
    Freed,
    /// Recorded by a capture that was given up.
    Lost,
}

/// One allocation.
#[derive(Debug)]
pub(super) struct Slot {
    /// Different for every slot of the process.
    pub(super) number: usize,
    place: Mutex<Place>,
    written: AtomicBool,
    /// Whether its values can change: uploads and outputs of traces.
    mutable: AtomicBool,
    graveyard: Graveyard,
}

impl Slot {
    pub(super) fn new(place: Place, graveyard: Graveyard) -> Arc<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (written, mutable) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { number, place: Mutex::new(place), written, mutable, graveyard })
    }

    pub(super) fn place(&self) -> Place {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_place(&self, place: Place) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn set_written(&self) {
        self.written.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_mutable(&self) -> bool {
        self.mutable.load(Ordering::Relaxed)
    }

    pub(super) fn set_mutable(&self) {
        self.mutable.store(true, Ordering::Relaxed);
    }

    /// The buffer, for an op or access `op` of the capture `serial` if there is one.
    pub(super) fn buffer(&self, op: &'static str, serial: Option<u64>) -> Result<BufferId> {
        match self.place() {
            Place::Heap(id) if self.is_written() || serial.is_some() => Ok(BufferId::Heap(id)),
            Place::Heap(_) => Err(TtError::memory(op, "is the output of a trace that was not replayed yet")),
            Place::Recorded { serial: of, index } if Some(of) == serial => Ok(BufferId::Recorded(index)),
            Place::Recorded { .. } => Err(TtError::memory(op, "belongs to a capture that is not finished")),
            Place::Freed => Err(TtError::memory(op, "was deallocated")),
            Place::Lost => Err(TtError::memory(op, "belongs to a capture that was given up")),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Place::Heap(id) = self.place() {
            self.graveyard.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
    }
}

/// Memory of one tensor on the software device: a part of an allocation that views share.
#[derive(Debug, Clone)]
pub struct SoftBuffer {
    pub(super) slot: Arc<Slot>,
    /// Its `buffer` is what it was when the tensor was made; the slot knows what it is now.
    pub(super) operand: Operand,
    /// Whether it is all of its allocation.
    pub(super) whole: bool,
}

impl SoftBuffer {
    /// The operand as it is now.
    pub(super) fn operand(&self, op: &'static str, serial: Option<u64>) -> Result<Operand> {
        Ok(self.operand.within(self.slot.buffer(op, serial)?))
    }
}
