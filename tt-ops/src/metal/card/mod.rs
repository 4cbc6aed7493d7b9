//! A Tenstorrent card through [`tt_sys`].
//!
//! * The card belongs to one thread, which this module starts; [`Metal`] and its buffers are names that the thread knows
//!   ([`worker`]), so that they may be used from anywhere.
//! * An op is one call of TTNN where TTNN has it, and a few where it has not ([`lower`]).
//! * What comes from the host lies at the far end of DRAM, results at the near end. A trace keeps what its capture read
//!   from outside, the results that were there at its end ([`state`]), and all else that it used of DRAM
//!   ([`tt_sys::Trace`]). So a replay, which writes where the capture wrote, never writes into a tensor that was made
//!   later.

mod convert;
mod file;
mod gate;
mod heads;
mod host;
mod lock;
mod lower;
mod placement;
mod program;
mod state;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use crate::captured::CapturedOps;
use crate::device::{CaptureOptions, Device, Input, Numerics};
use crate::dtype::{HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::metal::MetalOptions;
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};
use crate::trace::{Capture, Trace};
use file::PassingFile;
use gate::Gate;
use host::HostValues;
use state::Record;
use worker::{Id, Name, Worker};

/// A Tenstorrent card. A handle: clones are the same device, which is closed when the last of them, of its tensors and of
/// its traces is dropped.
#[derive(Clone)]
pub struct Metal {
    shared: Arc<Shared>,
}

struct Shared {
    worker: Worker,
    gate: Gate,
    describe: String,
}

impl std::fmt::Debug for Metal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Metal({})", self.shared.describe)
    }
}

/// A tensor of the card.
#[derive(Debug, Clone)]
pub struct MetalBuffer {
    name: Arc<Name>,
}

/// A matmul weight of the card.
#[derive(Debug, Clone)]
pub struct MetalWeight {
    name: Arc<Name>,
    bytes: usize,
}

/// A captured trace of the card.
#[derive(Debug)]
pub struct MetalTrace {
    name: Name,
    ops: CapturedOps,
    results: Vec<Vec<(MetalBuffer, TensorSpec)>>,
}

/// The order of packed weights: tt-metal's `.tensorbin` of `[1, 1, k, n]` in tiles.
const PACKED_FORMAT: &str = "tensorbin-kn-1";

/// What tt-metal reported while running `op`.
fn failed(op: &'static str) -> impl Fn(tt_sys::Error) -> TtError {
    move |error| TtError::Ttnn { op, what: error.to_string() }
}

impl Metal {
    /// Opens the card.
    ///
    /// # Errors
    /// Another process that holds it; no card; what tt-metal reports.
    pub fn open(options: &MetalOptions) -> Result<Self> {
        let (worker, describe) = Worker::start(options.clone())?;
        Ok(Self { shared: Arc::new(Shared { worker, gate: Gate::default(), describe }) })
    }

    /// Closes the card after the op or replay that runs now, whoever holds handles of it, and waits for that; whatever they ask
    /// afterwards is an error. For a program that must end while others are at work: tt-metal must not be in use when the
    /// process ends.
    pub fn close(&self) {
        self.shared.worker.close();
    }

    /// Asks TTNN what the ops of `body` need of a core's L1, without running them: their results hold nothing.
    ///
    /// # Errors
    /// What an op refuses; a capture that is going on.
    pub fn query<O>(&self, body: impl FnOnce() -> Result<O>) -> Result<(O, tt_sys::Resources)> {
        const OP: &str = "query";
        drop(self.shared.gate.outside_capture("a query")?);
        self.shared.worker.call(|card| card.device.begin_query().map_err(failed(OP)))?;
        let out = body();
        let needs = self.shared.worker.call(|card| card.device.end_query().map_err(failed(OP)))?;
        Ok((out?, needs))
    }

    fn buffer(&self, id: Id) -> MetalBuffer {
        MetalBuffer { name: Arc::new(self.shared.worker.name(id)) }
    }
}

impl Device for Metal {
    type Buffer = MetalBuffer;
    type Packed = MetalWeight;
    type Trace = MetalTrace;
    const COMPILES: bool = true;
    const ROW_TILE: usize = program::TILE;
    const NUMERICS: Numerics = Numerics::Card;

    fn name(&self) -> &'static str {
        "metal"
    }

    fn describe(&self) -> String {
        self.shared.describe.clone()
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn synchronize(&self) -> Result<()> {
        let _turn = self.shared.gate.outside_capture("waiting for the device")?;
        self.shared.worker.call(|card| card.device.synchronize().map_err(failed("synchronize_device")))
    }

    fn upload(&self, spec: &TensorSpec, data: HostSlice<'_>) -> Result<MetalBuffer> {
        let _turn = self.shared.gate.outside_capture("making a tensor")?;
        let (spec, values) = (*spec, HostValues::from(data));
        let id = self.shared.worker.call(move |card| card.upload(&spec, &values))?;
        Ok(self.buffer(id))
    }

    fn write(&self, buffer: &MetalBuffer, _: &TensorSpec, data: HostSlice<'_>) -> Result<()> {
        let _turn = self.shared.gate.outside_capture("writing host values")?;
        let (id, values) = (buffer.name.id(), HostValues::from(data));
        self.shared.worker.call(move |card| card.write(id, &values))
    }

    fn read(&self, buffer: &MetalBuffer, spec: &TensorSpec, out: HostSliceMut<'_>) -> Result<()> {
        let _turn = self.shared.gate.outside_capture("reading a tensor")?;
        let (id, spec) = (buffer.name.id(), *spec);
        let values = self.shared.worker.call(move |card| card.read(id, &spec))?;
        values.copy_to(out)
    }

    fn deallocate(&self, buffer: &MetalBuffer) -> Result<()> {
        let _turn = self.shared.gate.outside_capture("deallocating a tensor from outside")?;
        let id = buffer.name.id();
        self.shared.worker.call(move |card| card.deallocate(id))
    }

    fn pack(&self, spec: &WeightSpec, parts: &[HostSlice<'_>]) -> Result<MetalWeight> {
        let _turn = self.shared.gate.outside_capture("packing a weight")?;
        let (spec, values) = (*spec, host::matrix(spec, parts));
        let (id, bytes) = self.shared.worker.call(move |card| card.pack(&spec, &values))?;
        Ok(MetalWeight { name: Arc::new(self.shared.worker.name(id)), bytes })
    }

    fn packed_bytes(&self, packed: &MetalWeight) -> usize {
        packed.bytes
    }

    fn packed_format(&self) -> &'static str {
        PACKED_FORMAT
    }

    fn packed_to_bytes(&self, packed: &MetalWeight) -> Result<Vec<u8>> {
        let _turn = self.shared.gate.outside_capture("saving a weight")?;
        let (id, file) = (packed.name.id(), PassingFile::new("dump_tensor")?);
        let path = file.path().to_string();
        self.shared.worker.call(move |card| card.save(id, &path))?;
        file.read()
    }

    fn packed_from_bytes(&self, spec: &WeightSpec, bytes: &[u8]) -> Result<MetalWeight> {
        let _turn = self.shared.gate.outside_capture("loading a weight")?;
        let file = PassingFile::new("load_tensor")?;
        file.write(bytes)?;
        let (spec, path) = (*spec, file.path().to_string());
        let (id, bytes) = self.shared.worker.call(move |card| card.load(&spec, &path))?;
        Ok(MetalWeight { name: Arc::new(self.shared.worker.name(id)), bytes })
    }

    fn dispatch(
        &self,
        op: &Op,
        inputs: &[Input<'_, Self>],
        outputs: &[TensorSpec],
    ) -> Result<Vec<MetalBuffer>> {
        let mut turn = self.shared.gate.turn();
        let operands: Vec<state::Operand> = inputs
            .iter()
            .map(|input| match input {
                Input::Tensor { buffer, spec } => state::Operand::tensor(buffer.name.id(), **spec),
                Input::Weight { packed, spec } => state::Operand::weight(packed.name.id(), **spec),
            })
            .collect();
        let (op, specs) = (op.clone(), outputs.to_vec());
        let recorded = turn.recording().map(|_| (op.clone(), operands.clone()));
        let count = recorded.is_none() && self.shared.gate.counted().is_some();
        let (ids, programs) =
            self.shared.worker.call(move |card| card.dispatch(&op, &operands, &specs, count))?;
        self.shared.gate.add(programs);
        let buffers: Vec<MetalBuffer> = ids.iter().map(|&id| self.buffer(id)).collect();
        if let (Some(recording), Some((op, operands))) = (turn.recording(), recorded) {
            let results = buffers.iter().cloned().zip(outputs.iter().copied()).collect();
            recording.push(&op, &operands, &ids, outputs, results);
        }
        Ok(buffers)
    }

    /// Looks for room before `body` runs the first time, which may take long, and again when it is known how many programs it has.
    fn capture_with<O, E: From<TtError>>(
        &self,
        options: CaptureOptions,
        body: impl Fn(&Capture<Self>) -> Result<O, E>,
    ) -> Result<Trace<Self, O>, E> {
        self.shared.worker.call(|card| card.check_trace_region(0))?;
        let _counting = self.shared.gate.count();
        crate::trace::capture(self, options, body)
    }

    fn begin_capture(&self, options: CaptureOptions) -> Result<()> {
        let turn = self.shared.gate.outside_capture("a capture")?;
        let programs = self.shared.gate.counted().unwrap_or_default();
        self.shared.worker.call(move |card| card.begin_capture(programs))?;
        turn.begin(options.keep_all);
        Ok(())
    }

    fn end_capture(&self) -> Result<MetalTrace> {
        let (_turn, recording) = self.shared.gate.end()?;
        let id = self.shared.worker.call(state::Card::end_capture)?;
        let Record { ops, results } = recording.finish();
        Ok(MetalTrace { name: self.shared.worker.name(id), ops, results })
    }

    fn abort_capture(&self) {
        if let Ok((_turn, _)) = self.shared.gate.end() {
            // The trace is released when its name is dropped here.
            let ended = self.shared.worker.call(state::Card::end_capture);
            drop(ended.map(|id| self.shared.worker.name(id)));
        }
    }

    fn replay(&self, trace: &MetalTrace) -> Result<()> {
        let _turn = self.shared.gate.outside_capture("a replay")?;
        let id = trace.name.id();
        self.shared.worker.call(move |card| card.replay(id))
    }

    fn replay_timed(&self, _: &MetalTrace) -> Result<Vec<Duration>> {
        Err(TtError::Device {
            device: "metal",
            what: "a trace is one command to the card, which gives no time per op; use tt-metal's device profiler".into(),
        })
    }

    fn captured_ops<'a>(&self, trace: &'a MetalTrace) -> &'a CapturedOps {
        &trace.ops
    }

    fn captured_results(&self, trace: &MetalTrace) -> Vec<Vec<(MetalBuffer, TensorSpec)>> {
        trace.results.clone()
    }
}
