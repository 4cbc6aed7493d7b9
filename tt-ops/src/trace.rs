//! Traces: a stage's ops captured once and replayed (`ttnn.begin_trace_capture`, `end_trace_capture`,
//! `execute_trace`, `release_trace`).

use std::cell::RefCell;

use crate::captured::{CapturedOps, OpTime};
use crate::device::{CaptureOptions, Device};
use crate::dtype::{Dtype, Dynamic};
use crate::error::{Result, TtError};
use crate::tensor::Tensor;

/// What the body of a capture is given: a place for tensors that shall be readable after each replay.
#[derive(Debug)]
pub struct Capture<D: Device> {
    recording: bool,
    kept: RefCell<Vec<(String, Tensor<D, Dynamic>)>>,
}

impl<D: Device> Capture<D> {
    /// Whether ops are being recorded (rather than run once so that they compile).
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// Keeps `tensor` readable after each replay as [`Trace::kept`]. Results are the same bytes as without; the
    /// tensor merely gets memory of its own.
    pub fn keep<T: Dtype>(&self, name: impl Into<String>, tensor: &Tensor<D, T>) {
        if self.recording {
            self.kept.borrow_mut().push((name.into(), tensor.to_dynamic()));
        }
    }
}

/// A captured trace with the outputs of its body. See [`Device::capture`].
///
/// [`release`](Self::release) consumes it, so that a released trace cannot be replayed:
///
/// ```compile_fail
/// use tt_ops::{Result, Soft, Trace};
/// fn twice(trace: Trace<Soft, ()>) -> Result<()> {
///     trace.release();
///     trace.replay()
/// }
/// ```
#[derive(Debug)]
pub struct Trace<D: Device, O> {
    device: D,
    handle: D::Trace,
    outputs: O,
    kept: Vec<(String, Tensor<D, Dynamic>)>,
}

impl<D: Device, O> Trace<D, O> {
    /// What the body returned. Its tensors hold the results of the last replay, and are the inputs of later captures.
    pub fn outputs(&self) -> &O {
        &self.outputs
    }

    /// Tensors given to [`Capture::keep`], in that order.
    pub fn kept(&self) -> &[(String, Tensor<D, Dynamic>)] {
        &self.kept
    }

    /// The kept tensor of that name.
    pub fn kept_tensor(&self, name: &str) -> Option<&Tensor<D, Dynamic>> {
        self.kept.iter().find(|(kept, _)| kept == name).map(|(_, tensor)| tensor)
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device's handle.
    pub fn handle(&self) -> &D::Trace {
        &self.handle
    }

    /// Runs the trace and waits for it.
    ///
    /// # Errors
    /// What an op reports; an operand that was deallocated since.
    pub fn replay(&self) -> Result<()> {
        self.device.replay(&self.handle)
    }

    /// Runs the trace and says how long each op took.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn replay_timed(&self) -> Result<Vec<OpTime>> {
        let times = self.device.replay_timed(&self.handle)?;
        Ok(self.ops().with_times(&times))
    }

    /// The ops, in order.
    pub fn ops(&self) -> &CapturedOps {
        self.device.captured_ops(&self.handle)
    }

    /// Gives the trace's memory back and returns the outputs, which keep their last values.
    pub fn release(self) -> O {
        self.outputs
    }
}

/// Ends the recording whatever happens in the body.
struct Recording<'a, D: Device> {
    device: &'a D,
    open: bool,
}

impl<D: Device> Drop for Recording<'_, D> {
    fn drop(&mut self) {
        if self.open {
            self.device.abort_capture();
        }
    }
}

pub(crate) fn capture<D: Device, O, E: From<TtError>>(
    device: &D,
    options: CaptureOptions,
    body: impl Fn(&Capture<D>) -> Result<O, E>,
) -> Result<Trace<D, O>, E> {
    if D::COMPILES {
        body(&Capture { recording: false, kept: RefCell::default() })?;
        device.synchronize()?;
    }
    device.begin_capture(options)?;
    let mut recording = Recording { device, open: true };
    let capture = Capture { recording: true, kept: RefCell::default() };
    let outputs = body(&capture)?;
    recording.open = false;
    let handle = device.end_capture()?;
    Ok(Trace { device: device.clone(), handle, outputs, kept: capture.kept.into_inner() })
}
