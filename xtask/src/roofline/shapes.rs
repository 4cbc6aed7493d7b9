//! A device that knows shapes and computes nothing: it records the ops of a model of any size at once, without its weights.
//!
//! What a capture records is a trace; what runs outside of one is work at load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tt_ops::{
    CaptureOptions, CapturedOp, CapturedOperand, CapturedOps, CapturedSpec, Device, HostSlice, HostSliceMut,
    Input, Op, Result, TensorSpec, TtError, WeightSpec,
};

/// The device. A handle: clones are the same device.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    memories: usize,
    recording: Option<Vec<CapturedOp>>,
    at_load: Vec<CapturedOp>,
}

/// A weight that has no values.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightShape {
    memory: usize,
    bytes: usize,
}

impl Shapes {
    /// Ops that ran outside of captures so far.
    pub(super) fn at_load(&self) -> Vec<CapturedOp> {
        self.state().at_load.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // a panic elsewhere leaves a list of ops that is still right
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> usize {
        let mut state = self.state();
        state.memories += 1;
        state.memories
    }
}

/// What every request for values gets.
fn no_values<T>(what: &str) -> Result<T> {
    Err(TtError::Device { device: "shapes", what: format!("{what}: this device has shapes and no values") })
}

impl Device for Shapes {
    type Buffer = usize;
    type Packed = WeightShape;
    type Trace = CapturedOps;
    const COMPILES: bool = false;
    const ROW_TILE: usize = 32;

    fn name(&self) -> &'static str {
        "shapes"
    }

    fn describe(&self) -> String {
        "shapes: records ops, computes nothing".into()
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn upload(&self, _: &TensorSpec, _: HostSlice<'_>) -> Result<usize> {
        Ok(self.memory())
    }

    fn write(&self, _: &usize, _: &TensorSpec, _: HostSlice<'_>) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: &usize, _: &TensorSpec, _: HostSliceMut<'_>) -> Result<()> {
        no_values("read")
    }

    fn deallocate(&self, _: &usize) -> Result<()> {
        Ok(())
    }

    fn pack(&self, spec: &WeightSpec, _: &[HostSlice<'_>]) -> Result<WeightShape> {
        Ok(WeightShape { memory: self.memory(), bytes: spec.dtype.bytes(spec.k * spec.n) })
    }

    fn packed_bytes(&self, packed: &WeightShape) -> usize {
        packed.bytes
    }

    fn packed_format(&self) -> &'static str {
        "shapes"
    }

    fn packed_to_bytes(&self, _: &WeightShape) -> Result<Vec<u8>> {
        no_values("packed_to_bytes")
    }

    fn packed_from_bytes(&self, _: &WeightSpec, _: &[u8]) -> Result<WeightShape> {
        no_values("packed_from_bytes")
    }

    fn dispatch(&self, op: &Op, inputs: &[Input<'_, Self>], outputs: &[TensorSpec]) -> Result<Vec<usize>> {
        let made: Vec<usize> = outputs.iter().map(|_| self.memory()).collect();
        let operands = inputs
            .iter()
            .map(|input| match input {
                Input::Tensor { buffer, spec } => {
                    CapturedOperand { memory: **buffer, spec: CapturedSpec::Tensor(**spec) }
                }
                Input::Weight { packed, spec } => {
                    CapturedOperand { memory: packed.memory, spec: CapturedSpec::Weight(**spec) }
                }
            })
            .collect();
        let results = made
            .iter()
            .zip(outputs)
            .map(|(&memory, spec)| CapturedOperand { memory, spec: CapturedSpec::Tensor(*spec) })
            .collect();
        let is_view = matches!(op, Op::Reshape { .. });
        let mut state = self.state();
        let State { recording, at_load, .. } = &mut *state;
        let list = recording.as_mut().unwrap_or(at_load);
        list.push(CapturedOp::new(list.len(), op, operands, results, is_view));
        Ok(made)
    }

    fn begin_capture(&self, _: CaptureOptions) -> Result<()> {
        let mut state = self.state();
        if state.recording.is_some() {
            return Err(TtError::Capture("a capture inside a capture".into()));
        }
        state.recording = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&self) -> Result<CapturedOps> {
        let ops = self.state().recording.take();
        ops.map(|ops| CapturedOps { ops }).ok_or_else(|| TtError::Capture("the end of no capture".into()))
    }

    fn abort_capture(&self) {
        self.state().recording = None;
    }

    fn replay(&self, _: &CapturedOps) -> Result<()> {
        no_values("execute_trace")
    }

    fn replay_timed(&self, _: &CapturedOps) -> Result<Vec<Duration>> {
        no_values("execute_trace")
    }

    fn captured_ops<'a>(&self, trace: &'a CapturedOps) -> &'a CapturedOps {
        trace
    }

    fn captured_results(&self, trace: &CapturedOps) -> Vec<Vec<(usize, TensorSpec)>> {
        trace.ops.iter().map(|_| Vec::new()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_ops::{Bfloat16, DataType, Tensor, Weight, ops};

    #[test]
    fn a_capture_records_shapes_and_costs_and_the_rest_is_work_at_load() {
        let device = Shapes::default();
        let x = Tensor::<_, Bfloat16>::zeros(&device, [1, 49, 64]).unwrap();
        let w = Weight::from_in_out(&device, 64, 96, DataType::Bfloat8B, &vec![0.0f32; 64 * 96][..]).unwrap();
        let before: Tensor<_, Bfloat16> = ops::add(&x, 1.0).unwrap();
        let trace = device
            .capture(|_| -> Result<_> {
                let y: Tensor<_, Bfloat16> = ops::linear(&before, &w, ops::Linear::new())?;
                Ok(y)
            })
            .unwrap();
        let [linear] = &trace.ops().ops[..] else { panic!("{:?}", trace.ops()) };
        assert_eq!((linear.op.name(), linear.flops), ("linear", 2 * 49 * 64 * 96));
        assert_eq!(device.at_load().iter().map(|op| op.op.name()).collect::<Vec<_>>(), ["add"]);
    }

    #[test]
    fn values_cannot_be_had() {
        let x = Tensor::<_, Bfloat16>::zeros(&Shapes::default(), [2]).unwrap();
        let message = x.to_vector::<f32>().unwrap_err().to_string();
        assert!(message.contains("shapes and no values"), "{message}");
    }
}
