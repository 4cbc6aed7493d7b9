//! The software device: the CPU standing in for the card. The default where there is no card, and what every test
//! runs on.
//!
//! * An op runs at once into memory of its own; reshape, slice, permute, head split and merge only make views where
//!   strides can say it (in eager mode only views of tensors that cannot change).
//! * A trace is an execution plan: see [`tt_soft::plan`].
//! * Block formats as activations are held as `bfloat16` numbers that are exactly representable in the format.
//! * The checked mode is stricter than silicon: see [`SoftBuilder::checked`].

mod builder;
mod capture;
mod host;
mod lower;
mod lower_calls;
mod slot;
mod state;

use std::sync::Arc;
use std::time::Duration;

pub use builder::SoftBuilder;
pub use capture::SoftTrace;
pub use slot::SoftBuffer;
pub use tt_soft::Isa;

use state::Shared;
use tt_soft::PackedWeight;

use crate::captured::CapturedOps;
use crate::device::{CaptureOptions, Device, Input, ReadAt};
use crate::dtype::{DataType, HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};
use slot::Place;

/// A software device. A handle: clones are the same device.
#[derive(Clone)]
pub struct Soft {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Soft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Soft({})", self.describe())
    }
}

impl Soft {
    /// Options for opening one.
    pub fn builder() -> SoftBuilder {
        SoftBuilder::default()
    }

    /// A device as the environment says: `GR00T_THREADS`, `GR00T_SOFT_ISA`; otherwise all that the CPU has.
    ///
    /// # Errors
    /// Variables with values that cannot be used.
    pub fn open() -> Result<Self> {
        Self::builder().open()
    }

    /// The instruction set level.
    pub fn isa(&self) -> Isa {
        self.shared.engine.isa()
    }

    /// Threads that kernels run on.
    pub fn threads(&self) -> usize {
        self.shared.engine.threads()
    }

    /// Whether this is the checked mode.
    pub fn is_checked(&self) -> bool {
        self.shared.options.checked
    }

    /// Bytes in tensors, in memory kept for later tensors, and in the arena of traces. Weights are not counted.
    pub fn memory_bytes(&self) -> MemoryBytes {
        let state = self.shared.lock();
        MemoryBytes {
            tensors: state.heap.live_bytes(),
            pooled: state.heap.pooled_bytes(),
            arena: state.heap.arena_bytes(),
        }
    }

    /// Returns memory that is kept for later tensors to the system.
    pub fn trim(&self) {
        self.shared.lock().heap.trim();
    }
}

/// Memory of a software device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBytes {
    /// In tensors.
    pub tensors: usize,
    /// Kept for later tensors.
    pub pooled: usize,
    /// In the arena that all traces share.
    pub arena: usize,
}

/// One order serves all instruction set levels; see [`tt_soft::pack`].
const PACKED_FORMAT: &str = "soft-panels-1";

/// A weight packed for the software device.
#[derive(Debug, Clone)]
pub struct SoftWeight {
    pub(super) packed: Arc<PackedWeight>,
}

impl SoftWeight {
    /// The packed values.
    pub fn packed(&self) -> &PackedWeight {
        &self.packed
    }
}

/// A kernel's complaint, which inference should have prevented.
pub(crate) fn kernel_error(op: &'static str) -> impl Fn(tt_soft::Error) -> TtError {
    move |error| match error {
        tt_soft::Error::Plan { op, what } => TtError::Checked { op, what },
        other => TtError::Argument { op, got: other.to_string(), wanted: "what the kernel takes".into() },
    }
}

impl Device for Soft {
    type Buffer = SoftBuffer;
    type Packed = SoftWeight;
    type Trace = SoftTrace;
    const COMPILES: bool = false;
    // every row is work of its own, and a capture costs little
    const ROW_TILE: usize = 1;

    fn name(&self) -> &'static str {
        "soft"
    }

    fn describe(&self) -> String {
        let checked = if self.is_checked() { ", checked" } else { "" };
        format!("soft: {}, {} threads{checked}", self.isa(), self.threads())
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn upload(&self, spec: &TensorSpec, data: HostSlice<'_>) -> Result<SoftBuffer> {
        host::upload(&self.shared, spec, data)
    }

    fn write(&self, buffer: &SoftBuffer, spec: &TensorSpec, data: HostSlice<'_>) -> Result<()> {
        host::write(&self.shared, buffer, spec, data)
    }

    fn read(&self, buffer: &SoftBuffer, _: &TensorSpec, out: HostSliceMut<'_>) -> Result<()> {
        host::read(&self.shared, buffer, out)
    }

    fn deallocate(&self, buffer: &SoftBuffer) -> Result<()> {
        let mut state = self.shared.lock();
        if let Place::Heap(id) = buffer.slot.place() {
            if state.active.is_some() {
                let what = "deallocating a tensor from outside while a trace is being captured";
                return Err(TtError::Capture(what.into()));
            }
            state.heap.free(id);
        }
        buffer.slot.set_place(Place::Freed);
        Ok(())
    }

    fn pack(&self, spec: &WeightSpec, parts: &[HostSlice<'_>]) -> Result<SoftWeight> {
        host::pack(&self.shared, spec, parts)
    }

    fn packed_bytes(&self, packed: &SoftWeight) -> usize {
        packed.packed.bytes()
    }

    fn packed_format(&self) -> &'static str {
        PACKED_FORMAT
    }

    fn packed_to_bytes(&self, packed: &SoftWeight) -> Result<Vec<u8>> {
        Ok(packed.packed.to_bytes())
    }

    fn packed_from_bytes(&self, spec: &WeightSpec, bytes: &[u8]) -> Result<SoftWeight> {
        host::unpack(&self.shared, spec, |engine| PackedWeight::from_bytes(engine, bytes))
    }

    fn packed_read(&self, spec: &WeightSpec, length: usize, read: &ReadAt<'_>) -> Result<SoftWeight> {
        host::unpack(&self.shared, spec, |engine| PackedWeight::read(engine, length, read))
    }

    fn dispatch(
        &self,
        op: &Op,
        inputs: &[Input<'_, Self>],
        outputs: &[TensorSpec],
    ) -> Result<Vec<SoftBuffer>> {
        lower::dispatch(&self.shared, op, inputs, outputs)
    }

    fn begin_capture(&self, options: CaptureOptions) -> Result<()> {
        self.shared.begin(options.keep_all)
    }

    fn end_capture(&self) -> Result<SoftTrace> {
        capture::end(&self.shared)
    }

    fn abort_capture(&self) {
        capture::abort(&self.shared);
    }

    fn replay(&self, trace: &SoftTrace) -> Result<()> {
        capture::replay(&self.shared, trace, None)
    }

    fn replay_timed(&self, trace: &SoftTrace) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        capture::replay(&self.shared, trace, Some(&mut times))?;
        Ok(times)
    }

    fn captured_ops<'a>(&self, trace: &'a SoftTrace) -> &'a CapturedOps {
        trace.ops()
    }

    fn captured_results(&self, trace: &SoftTrace) -> Vec<Vec<(SoftBuffer, TensorSpec)>> {
        trace.results()
    }
}

/// How the software device holds a data type.
pub(super) fn storage(dtype: DataType) -> tt_soft::Dtype {
    match dtype {
        DataType::Float32 => tt_soft::Dtype::F32,
        DataType::Bfloat16 | DataType::Bfloat8B | DataType::Bfloat4B => tt_soft::Dtype::Bf16,
        DataType::Uint32 => tt_soft::Dtype::U32,
        DataType::Int32 => tt_soft::Dtype::I32,
    }
}
