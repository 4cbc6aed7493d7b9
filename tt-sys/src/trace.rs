//! Traces: operations recorded once and replayed (`ttnn::operations::trace`).

use std::rc::Rc;

use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::device::Device;
use crate::error::Result;

/// A trace, from [`Device::begin_trace`]. Released when dropped.
///
/// A replay reads and writes the addresses of the capture. What it reads from outside, and results that are there when
/// the capture ends, must be kept alive as long as the trace is, since their memory would be given to others. What the
/// capture used of DRAM and freed is kept by the trace itself; of L1, where kernels compute, it is not: a tensor in L1 that was
/// made after the capture may be lost by a replay.
pub struct Trace {
    device: Rc<UniquePtr<ffi::Device>>,
    id: u32,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trace({})", self.id)
    }
}

impl Trace {
    pub(crate) fn new(device: &Device, id: u32) -> Self {
        Self { device: Rc::clone(device.handle()), id }
    }

    /// Ends recording.
    ///
    /// # Errors
    /// A trace region that is too small; a trace that is not being recorded.
    pub fn end(&self) -> Result<()> {
        Ok(ffi::end_trace(&self.device, self.id)?)
    }

    /// Runs what was recorded, and waits for it where `blocking`.
    ///
    /// # Errors
    /// A device that was closed.
    pub fn execute(&self, blocking: bool) -> Result<()> {
        Ok(ffi::execute_trace(&self.device, self.id, blocking)?)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // A closed device has released it already.
        let _ = ffi::release_trace(&self.device, self.id);
    }
}
