//! What the card's thread knows: tensors by number, traces, and what a capture has made.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tt_sys::{Device, DeviceFacts, Tensor};

use super::failed;
use super::host::HostValues;
use super::worker::Id;
use super::{MetalBuffer, MetalWeight, lower};
use crate::captured::{CapturedOp, CapturedOperand, CapturedOps, CapturedSpec};
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};

/// One operand of an op, by number.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) id: Id,
    pub(super) spec: CapturedSpec,
}

impl Operand {
    pub(super) fn tensor(id: Id, spec: TensorSpec) -> Self {
        Self { id, spec: CapturedSpec::Tensor(spec) }
    }

    pub(super) fn weight(id: Id, spec: WeightSpec) -> Self {
        Self { id, spec: CapturedSpec::Weight(spec) }
    }
}

/// What a capture has recorded on the caller's side.
#[derive(Debug)]
pub(super) struct Recording {
    keep_all: bool,
    memories: HashMap<Id, usize>,
    recorded: Record,
}

/// A capture's ops, kept results and weights.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) ops: CapturedOps,
    pub(super) results: Vec<Vec<(MetalBuffer, TensorSpec)>>,
    pub(super) weights: Vec<MetalWeight>,
}

impl Recording {
    pub(super) fn new(keep_all: bool) -> Self {
        Self { keep_all, memories: HashMap::new(), recorded: Record::default() }
    }

    pub(super) fn push(
        &mut self,
        op: &Op,
        operands: &[Operand],
        ids: &[Id],
        outputs: &[TensorSpec],
        weights: impl Iterator<Item = MetalWeight>,
        results: Vec<(MetalBuffer, TensorSpec)>,
    ) {
        let mut number = |id: Id| {
            let next = self.memories.len();
            *self.memories.entry(id).or_insert(next)
        };
        let inputs =
            operands.iter().map(|o| CapturedOperand { memory: number(o.id), spec: o.spec.clone() }).collect();
        let made = ids.iter().zip(outputs);
        let outputs = made
            .map(|(&id, spec)| CapturedOperand { memory: number(id), spec: CapturedSpec::Tensor(*spec) })
            .collect();
        let index = self.recorded.ops.ops.len();
        self.recorded.ops.ops.push(CapturedOp::new(index, op, inputs, outputs, false));
        self.recorded.weights.extend(weights);
        self.recorded.results.push(if self.keep_all { results } else { Vec::new() });
    }

    pub(super) fn finish(self) -> Record {
        self.recorded
    }
}

/// A trace with the memory that its replays write.
#[derive(Debug)]
struct HeldTrace {
    trace: tt_sys::Trace,
    results: Vec<Rc<Tensor>>,
}

/// The card and everything on it. Tensors are held with four extents; leading ones cost nothing.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) device: Device,
    pub(super) facts: DeviceFacts,
    trace_region_size: usize,
    next: Id,
    tensors: HashMap<Id, Rc<Tensor>>,
    /// Tensors that can be written, and what shares memory with them.
    inputs: HashSet<Id>,
    traces: HashMap<Id, HeldTrace>,
    capturing: Option<HeldTrace>,
    /// Record made outside captures while traces were there: the next replay could write into them, so they move to the
    /// far end of DRAM before it.
    near: Vec<Id>,
}

impl Card {
    pub(super) fn new(device: Device, facts: DeviceFacts, trace_region_size: usize) -> Self {
        Self {
            device,
            facts,
            trace_region_size,
            next: 0,
            tensors: HashMap::new(),
            inputs: HashSet::new(),
            traces: HashMap::new(),
            capturing: None,
            near: Vec::new(),
        }
    }

    fn insert(&mut self, tensor: Rc<Tensor>) -> Id {
        self.next += 1;
        self.tensors.insert(self.next, tensor);
        self.next
    }

    pub(super) fn get(&self, op: &'static str, id: Id) -> Result<Rc<Tensor>> {
        self.tensors.get(&id).cloned().ok_or_else(|| TtError::memory(op, "was deallocated"))
    }

    pub(super) fn forget(&mut self, id: Id) {
        self.tensors.remove(&id);
        self.inputs.remove(&id);
        self.traces.remove(&id);
    }

    pub(super) fn deallocate(&mut self, id: Id) -> Result<()> {
        const OP: &str = "deallocate";
        self.get(OP, id)?.deallocate().map_err(failed(OP))?;
        self.forget(id);
        Ok(())
    }

    /// Frees everything and closes the card.
    pub(super) fn close(mut self) {
        self.capturing = None;
        self.traces.clear();
        self.tensors.clear();
        // Nobody is there to be told.
        let _ = self.device.close();
    }

    pub(super) fn upload(&mut self, spec: &TensorSpec, values: &HostValues) -> Result<Id> {
        const OP: &str = "from_span";
        let wanted = lower::sys_spec(spec)?;
        let tensor = match values {
            HostValues::Floats(v) => self.device.from_floats(&wanted, v),
            HostValues::Uints(v) => self.device.from_u32(&wanted, v),
            HostValues::Ints(v) => self.device.from_i32(&wanted, v),
        };
        let id = self.insert(Rc::new(tensor.map_err(failed(OP))?));
        self.inputs.insert(id);
        Ok(id)
    }

    pub(super) fn write(&mut self, id: Id, values: &HostValues) -> Result<()> {
        const OP: &str = "copy_host_to_device_tensor";
        if !self.inputs.contains(&id) {
            return Err(TtError::memory(OP, "is the result of an op; write to one made from host values"));
        }
        let tensor = self.get(OP, id)?;
        match values {
            HostValues::Floats(v) => tensor.write_floats(v),
            HostValues::Uints(v) => tensor.write_u32(v),
            HostValues::Ints(v) => tensor.write_i32(v),
        }
        .map_err(failed(OP))
    }

    pub(super) fn read(&mut self, id: Id, spec: &TensorSpec) -> Result<HostValues> {
        const OP: &str = "to_vector";
        let tensor = lower::exact(&self.get(OP, id)?, spec)?;
        let volume = spec.shape.volume();
        match spec.dtype {
            DataType::Uint32 => {
                let mut out = vec![0; volume];
                tensor.read_u32(&mut out).map(|()| HostValues::Uints(out))
            }
            DataType::Int32 => {
                let mut out = vec![0; volume];
                tensor.read_i32(&mut out).map(|()| HostValues::Ints(out))
            }
            _ => {
                let mut out = vec![0.0; volume];
                tensor.read_floats(&mut out).map(|()| HostValues::Floats(out))
            }
        }
        .map_err(failed(OP))
    }

    pub(super) fn pack(&mut self, spec: &WeightSpec, values: &[f32]) -> Result<(Id, usize)> {
        let wanted = lower::weight_spec(spec);
        let tensor = self.device.from_floats(&wanted, values).map_err(failed("pack"))?;
        Ok((self.insert(Rc::new(tensor)), lower::weight_bytes(spec)))
    }

    /// A weight as tt-metal's `.tensorbin` file, which is what it reads and writes.
    pub(super) fn save(&mut self, id: Id) -> Result<Vec<u8>> {
        const OP: &str = "dump_tensor";
        let tensor = self.get(OP, id)?;
        through_file(OP, |path| {
            tensor.dump(path).map_err(failed(OP))?;
            std::fs::read(path).map_err(|e| TtError::memory(OP, format!("file {path}: {e}")))
        })
    }

    pub(super) fn load(&mut self, spec: &WeightSpec, bytes: &[u8]) -> Result<(Id, usize)> {
        const OP: &str = "load_tensor";
        let tensor = through_file(OP, |path| {
            std::fs::write(path, bytes).map_err(|e| TtError::memory(OP, format!("file {path}: {e}")))?;
            self.device.load(path).map_err(failed(OP))
        })?;
        let got = tensor.spec().map_err(failed(OP))?;
        if got != lower::weight_spec(spec) {
            return Err(TtError::shape(OP, format!("{:?} {:?}", got.dtype, got.shape), spec.to_string()));
        }
        Ok((self.insert(Rc::new(tensor)), lower::weight_bytes(spec)))
    }

    pub(super) fn dispatch(
        &mut self,
        op: &Op,
        operands: &[Operand],
        outputs: &[TensorSpec],
    ) -> Result<Vec<Id>> {
        let mut lowering = lower::Lowering::new(self, op.name());
        let results = lowering.run(op, operands, outputs)?;
        let made = lowering.finish();
        if let Some(capture) = &mut self.capturing {
            capture.results.extend(made);
            return Ok(results.into_iter().map(|tensor| self.insert(tensor)).collect());
        }
        let mut ids = Vec::new();
        for tensor in results {
            // A view of something that can be written would change with it.
            let changes = operands
                .iter()
                .filter(|o| self.inputs.contains(&o.id))
                .filter_map(|o| self.tensors.get(&o.id))
                .any(|input| Rc::ptr_eq(input, &tensor) || input.address().ok() == tensor.address().ok());
            let tensor = if changes { lower::copied(&tensor, op.name())? } else { tensor };
            let id = self.insert(tensor);
            if !self.traces.is_empty() {
                self.near.push(id);
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// Moves results that a replay could write into out of its way.
    fn settle(&mut self) -> Result<()> {
        const OP: &str = "assign";
        for id in std::mem::take(&mut self.near) {
            let Some(tensor) = self.tensors.get(&id) else { continue };
            let far = self.device.allocate(&tensor.spec().map_err(failed(OP))?).map_err(failed(OP))?;
            tt_sys::ops::copy_into(tensor, &far).map_err(failed(OP))?;
            self.tensors.insert(id, Rc::new(far));
        }
        Ok(())
    }

    pub(super) fn begin_capture(&mut self) -> Result<()> {
        const OP: &str = "begin_trace_capture";
        if self.trace_region_size == 0 {
            return Err(TtError::Capture(
                "the device was opened without a trace region (trace_region_size)".into(),
            ));
        }
        self.settle()?;
        self.device.synchronize().map_err(failed(OP))?;
        let trace = self.device.begin_trace().map_err(failed(OP))?;
        self.capturing = Some(HeldTrace { trace, results: Vec::new() });
        Ok(())
    }

    pub(super) fn end_capture(&mut self) -> Result<Id> {
        let held = self.capturing.take().ok_or_else(|| TtError::Capture("no capture to end".into()))?;
        held.trace.end().map_err(|error| {
            let region = self.trace_region_size;
            TtError::Capture(format!("{error} (trace_region_size is {region} bytes)"))
        })?;
        self.next += 1;
        self.traces.insert(self.next, held);
        Ok(self.next)
    }

    pub(super) fn replay(&mut self, id: Id) -> Result<()> {
        const OP: &str = "execute_trace";
        self.settle()?;
        let held = self.traces.get(&id).ok_or_else(|| TtError::memory(OP, "was released"))?;
        held.trace.execute(true).map_err(failed(OP))
    }
}

/// Runs `body` with the path of a file that is gone afterwards.
fn through_file<T>(op: &'static str, body: impl FnOnce(&str) -> Result<T>) -> Result<T> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("gr00t-tt-{}-{}.tensorbin", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let text = path.to_str().ok_or_else(|| TtError::memory(op, "has a temporary folder that is not text"))?;
    let out = body(text);
    // It may never have been written.
    let _ = std::fs::remove_file(&path);
    out
}
