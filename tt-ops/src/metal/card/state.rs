//! What the card's thread knows: tensors by number, traces, and what a capture has used and made.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tt_sys::{Device, DeviceFacts, Tensor};

use super::failed;
use super::host::HostValues;
use super::worker::Id;
use super::{MetalBuffer, convert, lower};
use crate::captured::{CapturedOp, CapturedOperand, CapturedOps, CapturedSpec};
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};

/// What a program takes of a trace at least. The smallest that were seen, matmuls on few cores, took 2 kB.
const PROGRAM_BYTES: u64 = 512;

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

/// A capture's ops and kept results.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) ops: CapturedOps,
    pub(super) results: Vec<Vec<(MetalBuffer, TensorSpec)>>,
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
        self.recorded.results.push(if self.keep_all { results } else { Vec::new() });
    }

    pub(super) fn finish(self) -> Record {
        self.recorded
    }
}

/// A trace with what its replays read from outside and what they leave behind.
#[derive(Debug)]
struct HeldTrace {
    trace: tt_sys::Trace,
    operands: HashMap<Id, Rc<Tensor>>,
    results: Vec<Rc<Tensor>>,
}

/// A capture that is going on.
#[derive(Debug)]
struct Capturing {
    trace: tt_sys::Trace,
    /// Results of its ops.
    made: HashSet<Id>,
    /// Operands from outside.
    operands: HashMap<Id, Rc<Tensor>>,
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
    capturing: Option<Capturing>,
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
        // tt-metal waits for ever for the work of a capture that is not ended.
        if let Some(capture) = self.capturing.take() {
            let _ = capture.trace.end();
        }
        self.traces.clear();
        self.tensors.clear();
        // Nobody is there to be told.
        let _ = self.device.close();
    }

    pub(super) fn upload(&mut self, spec: &TensorSpec, values: &HostValues) -> Result<Id> {
        const OP: &str = "from_span";
        let wanted = convert::sys_spec(spec, self.facts.grid)?;
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
        let wanted = convert::weight_spec(spec);
        let tensor = self.device.from_floats(&wanted, values).map_err(failed("pack"))?;
        Ok((self.insert(Rc::new(tensor)), convert::weight_bytes(spec)))
    }

    /// Writes a weight to a `.tensorbin` file.
    pub(super) fn save(&mut self, id: Id, path: &str) -> Result<()> {
        const OP: &str = "dump_tensor";
        self.get(OP, id)?.dump(path).map_err(failed(OP))
    }

    /// A weight from a `.tensorbin` file.
    pub(super) fn load(&mut self, spec: &WeightSpec, path: &str) -> Result<(Id, usize)> {
        const OP: &str = "load_tensor";
        let tensor = self.device.load(path).map_err(failed(OP))?;
        let got = tensor.spec().map_err(failed(OP))?;
        if got != convert::weight_spec(spec) {
            return Err(TtError::shape(OP, format!("{:?} {:?}", got.dtype, got.shape), spec.to_string()));
        }
        Ok((self.insert(Rc::new(tensor)), convert::weight_bytes(spec)))
    }

    /// Runs `op`; with its results, how many programs it took, if they are to be counted.
    pub(super) fn dispatch(
        &mut self,
        op: &Op,
        operands: &[Operand],
        outputs: &[TensorSpec],
        count: bool,
    ) -> Result<(Vec<Id>, u64)> {
        let lowered = || lower::Lowering::new(self, op.name()).run(op, operands, outputs);
        let (results, programs) = if count {
            self.device.counting_programs(lowered).map_err(failed(op.name()))?
        } else {
            (lowered(), 0)
        };
        let results = results?;
        let mut ids = Vec::new();
        if let Some(capture) = &mut self.capturing {
            for id in operands.iter().map(|o| o.id).filter(|id| !capture.made.contains(id)) {
                capture.operands.extend(self.tensors.get(&id).map(|tensor| (id, Rc::clone(tensor))));
            }
            for tensor in results {
                self.next += 1;
                self.tensors.insert(self.next, tensor);
                capture.made.insert(self.next);
                ids.push(self.next);
            }
            return Ok((ids, programs));
        }
        for tensor in results {
            // A view of something that can be written would change with it.
            let changes = operands
                .iter()
                .filter(|o| self.inputs.contains(&o.id))
                .filter_map(|o| self.tensors.get(&o.id))
                .any(|input| Rc::ptr_eq(input, &tensor) || input.address().ok() == tensor.address().ok());
            let tensor = if changes { lower::copied(&tensor, op.name())? } else { tensor };
            ids.push(self.insert(tensor));
        }
        Ok((ids, programs))
    }

    /// Refuses a capture of `programs` programs that cannot have room. How much a trace takes to the byte, tt-metal knows when the
    /// capture ends.
    pub(super) fn check_trace_region(&mut self, programs: u64) -> Result<()> {
        if self.trace_region_size == 0 {
            return Err(TtError::Capture(
                "the device was opened without a trace region (trace_region_size)".into(),
            ));
        }
        let used = self.device.trace_region_use().map_err(failed("begin_trace_capture"))?;
        let region = self.trace_region_size;
        if used.largest_free_per_bank == 0 {
            return Err(TtError::Capture(format!(
                "the trace region is full (trace_region_size is {region} bytes)"
            )));
        }
        // tt-metal holds the sizes of all traces against the region's, whatever its banks have.
        let taken = used.allocated_per_bank * used.banks;
        let (least, free) = (programs * PROGRAM_BYTES, (region as u64).saturating_sub(taken));
        if least > free {
            return Err(TtError::Capture(format!(
                "{programs} programs take at least {least} bytes of trace, and {free} are free (trace_region_size is {region} \
                 bytes)"
            )));
        }
        Ok(())
    }

    /// Starts recording `programs` programs, or as many as there will be where that is not known.
    pub(super) fn begin_capture(&mut self, programs: u64) -> Result<()> {
        const OP: &str = "begin_trace_capture";
        self.check_trace_region(programs)?;
        self.device.synchronize().map_err(failed(OP))?;
        let trace = self.device.begin_trace().map_err(failed(OP))?;
        self.capturing = Some(Capturing { trace, made: HashSet::new(), operands: HashMap::new() });
        Ok(())
    }

    pub(super) fn end_capture(&mut self) -> Result<Id> {
        let capture = self.capturing.take().ok_or_else(|| TtError::Capture("no capture to end".into()))?;
        let Capturing { trace, made, operands } = capture;
        trace.end().map_err(|error| {
            let region = self.trace_region_size;
            TtError::Capture(format!("{error} (trace_region_size is {region} bytes)"))
        })?;
        // Results without a name were freed when the capture had used them; in DRAM their memory is the trace's own now.
        let results = made.iter().filter_map(|id| self.tensors.get(id).cloned());
        let results = results.collect();
        self.next += 1;
        self.traces.insert(self.next, HeldTrace { trace, operands, results });
        Ok(self.next)
    }

    pub(super) fn replay(&mut self, id: Id) -> Result<()> {
        const OP: &str = "execute_trace";
        let HeldTrace { trace, operands, results } =
            self.traces.get(&id).ok_or_else(|| TtError::memory(OP, "was released"))?;
        // What lies there now would be read, or overwritten.
        if !operands.values().chain(results).all(|tensor| tensor.is_allocated()) {
            return Err(TtError::memory(OP, "was deallocated"));
        }
        if self.has_later_in_l1(id)? {
            let what = "would be overwritten: it is in L1, where traces compute, and was made after this one; place it in DRAM";
            return Err(TtError::memory(OP, what));
        }
        trace.execute(true).map_err(failed(OP))
    }

    /// Whether something in L1 was made after the trace `id`, and is used from outside or by another trace. What was there before
    /// the capture lies where the trace does not write.
    fn has_later_in_l1(&self, id: Id) -> Result<bool> {
        let all = || self.tensors.iter().chain(self.traces.values().flat_map(|trace| &trace.operands));
        // Ops that change nothing give old tensors new numbers.
        let before: HashSet<*const Tensor> =
            all().filter(|(other, _)| **other <= id).map(|(_, tensor)| Rc::as_ptr(tensor)).collect();
        for (_, tensor) in
            all().filter(|(other, tensor)| **other > id && !before.contains(&Rc::as_ptr(tensor)))
        {
            if tensor.is_allocated() {
                let place = tensor.spec().map_err(failed("execute_trace"))?.memory_config;
                if place.buffer_type == tt_sys::BufferType::L1 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
