//! What a device must do. The ops in [`crate::ops`] check their arguments first, so a device only sees what is right.

use std::fmt::Debug;
use std::time::Duration;

use crate::captured::CapturedOps;
use crate::dtype::{HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};
use crate::trace::{Capture, Trace};

pub use tt_soft::ReadAt;

/// One operand of an op as a device sees it.
#[derive(Debug)]
pub enum Input<'a, D: Device> {
    /// A tensor.
    Tensor {
        /// Its memory.
        buffer: &'a D::Buffer,
        /// What it holds.
        spec: &'a TensorSpec,
    },
    /// A packed weight.
    Weight {
        /// Its memory.
        packed: &'a D::Packed,
        /// What it holds.
        spec: &'a WeightSpec,
    },
}

#[allow(clippy::expl_impl_clone_on_copy, reason = "a derive would ask that the device is Copy")]
impl<D: Device> Clone for Input<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Input<'_, D> {}

/// A device that owns tensors and runs ops. A handle: clones are the same device.
///
/// Devices may be used from several threads; they do one thing at a time. While a thread captures a trace, other
/// threads wait.
pub trait Device: Clone + Debug + Send + Sync + Sized + 'static {
    /// Memory of one tensor. A handle: clones are the same memory, which lives until the last of them is dropped.
    type Buffer: Clone + Debug + Send + Sync;
    /// A matmul weight in the device's own order. A handle.
    type Packed: Clone + Debug + Send + Sync;
    /// A captured trace. A device that cannot capture has an uninhabited type here, so that replaying it cannot be
    /// written.
    type Trace: Debug + Send + Sync;

    /// Whether ops must run once before they are captured, so that their kernels are compiled. Then
    /// [`capture`](Self::capture) calls its body twice.
    const COMPILES: bool;

    /// Rows that a device computes at a time: padding a tensor's rows to a multiple of it costs nothing, and fewer captures serve
    /// more lengths.
    const ROW_TILE: usize;

    /// How near results are to exact ones.
    const NUMERICS: Numerics = Numerics::Fp32;

    /// Short name: `soft` or `metal`.
    fn name(&self) -> &'static str;

    /// One line for logs: what the device is and how it was opened.
    fn describe(&self) -> String;

    /// Whether two handles are the same device.
    fn same(&self, other: &Self) -> bool;

    /// Waits until everything that was sent to the device is done (`ttnn::synchronize_device`).
    fn synchronize(&self) -> Result<()>;

    /// Allocates a tensor and fills it. `data` has `spec.shape.volume()` values of the right kind.
    fn upload(&self, spec: &TensorSpec, data: HostSlice<'_>) -> Result<Self::Buffer>;

    /// Writes into an existing tensor: its address stays, so this is how inputs of a trace are refreshed.
    fn write(&self, buffer: &Self::Buffer, spec: &TensorSpec, data: HostSlice<'_>) -> Result<()>;

    /// Reads a tensor, row-major.
    fn read(&self, buffer: &Self::Buffer, spec: &TensorSpec, out: HostSliceMut<'_>) -> Result<()>;

    /// Gives a tensor's memory back although handles to it may live on (`ttnn::deallocate`).
    fn deallocate(&self, buffer: &Self::Buffer) -> Result<()>;

    /// Packs a weight. `parts` lie side by side along `n`; each has `k` times a whole number of floats, in the order
    /// that `spec` says.
    fn pack(&self, spec: &WeightSpec, parts: &[HostSlice<'_>]) -> Result<Self::Packed>;

    /// Bytes that a packed weight takes on the device.
    fn packed_bytes(&self, packed: &Self::Packed) -> usize;

    /// Names the order in which this device packs weights, with its version: part of the key of a cache.
    fn packed_format(&self) -> &'static str;

    /// A packed weight as bytes for a cache on disk.
    fn packed_to_bytes(&self, packed: &Self::Packed) -> Result<Vec<u8>>;

    /// A packed weight from [`packed_to_bytes`](Self::packed_to_bytes). Sizes are checked, contents are not: a cache
    /// keeps a checksum.
    fn packed_from_bytes(&self, spec: &WeightSpec, bytes: &[u8]) -> Result<Self::Packed>;

    /// [`packed_from_bytes`](Self::packed_from_bytes) of `length` bytes that `read` gives, each of them once. A device may read
    /// them in parts and on several threads, to where they are to be.
    fn packed_read(&self, spec: &WeightSpec, length: usize, read: &ReadAt<'_>) -> Result<Self::Packed> {
        let mut bytes = vec![0; length];
        read(0, &mut bytes).map_err(|error| TtError::Argument {
            op: "pack",
            got: error.to_string(),
            wanted: "the bytes of a packed weight".into(),
        })?;
        self.packed_from_bytes(spec, &bytes)
    }

    /// Runs `op`, or records it while a trace is being captured. `outputs` is what the op's inference gave.
    fn dispatch(
        &self,
        op: &Op,
        inputs: &[Input<'_, Self>],
        outputs: &[TensorSpec],
    ) -> Result<Vec<Self::Buffer>>;

    /// Starts recording on this thread. Used through [`capture`](Self::capture).
    fn begin_capture(&self, options: CaptureOptions) -> Result<()>;

    /// Ends recording. Tensors of the capture whose handles are still alive keep their memory; all others share
    /// theirs.
    fn end_capture(&self) -> Result<Self::Trace>;

    /// Ends recording and forgets what was recorded.
    fn abort_capture(&self);

    /// Runs a trace and waits for it.
    fn replay(&self, trace: &Self::Trace) -> Result<()>;

    /// Runs a trace and says how long each op took.
    fn replay_timed(&self, trace: &Self::Trace) -> Result<Vec<Duration>>;

    /// The ops of a trace.
    fn captured_ops<'a>(&self, trace: &'a Self::Trace) -> &'a CapturedOps;

    /// The results of each op of a trace that was captured with [`CaptureOptions::keep_all`]; empty lists otherwise.
    fn captured_results(&self, trace: &Self::Trace) -> Vec<Vec<(Self::Buffer, TensorSpec)>>;

    /// Captures the ops that `body` calls, to be replayed as often as wanted.
    ///
    /// `body` may be called twice: where kernels are compiled at first use it runs eagerly once. Tensors and weights
    /// that it uses must exist before; what it returns (and what it hands to [`Capture::keep`]) can be read after
    /// each replay or used by later captures; everything else is the device's private matter. Inputs are tensors made
    /// before the capture and refreshed with [`Tensor::write`](crate::Tensor::write).
    ///
    /// ```
    /// use tt_ops::{ops, Bfloat16, Device, Float32, Soft, Tensor};
    /// # fn main() -> tt_ops::Result<()> {
    /// let device = Soft::builder().threads(1).open()?;
    /// let x = Tensor::<_, Bfloat16>::zeros(&device, [2, 32])?;
    /// let trace = device.capture(|_| -> tt_ops::Result<_> {
    ///     let y: Tensor<_, Bfloat16> = ops::add(&x, 1.0)?;
    ///     ops::typecast::<_, _, Float32>(&y)
    /// })?;
    /// x.write(&[2.0f32; 64])?;
    /// trace.replay()?;
    /// assert_eq!(trace.outputs().to_vector::<f32>()?, vec![3.0; 64]);
    /// trace.release();
    /// # Ok(())
    /// # }
    /// ```
    fn capture<O, E: From<TtError>>(
        &self,
        body: impl Fn(&Capture<Self>) -> Result<O, E>,
    ) -> Result<Trace<Self, O>, E> {
        self.capture_with(CaptureOptions::default(), body)
    }

    /// [`capture`](Self::capture) with options.
    fn capture_with<O, E: From<TtError>>(
        &self,
        options: CaptureOptions,
        body: impl Fn(&Capture<Self>) -> Result<O, E>,
    ) -> Result<Trace<Self, O>, E> {
        crate::trace::capture(self, options, body)
    }
}

/// How near a device's results are to exact ones; decides what the op suite allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numerics {
    /// Sums, functions and statistics as good as fp32.
    Fp32,
    /// As the card's kernels compute.
    Card,
}

/// What a capture keeps beside its outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureOptions {
    /// Keep the result of every op, so that two devices can be compared op by op. Results are the same bytes as
    /// without.
    pub keep_all: bool,
}

impl CaptureOptions {
    /// Keep the result of every op.
    #[must_use]
    pub fn keep_all(mut self) -> Self {
        self.keep_all = true;
        self
    }
}
