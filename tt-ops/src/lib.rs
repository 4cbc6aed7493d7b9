//! The typed tensor API named after TTNN: the only seam between the model and a device.
//!
//! * [`Device`] is a trait with two implementations: [`Soft`], the CPU standing in for the card, and [`Metal`], the
//!   card.
//! * [`Tensor`] and [`Weight`] own device memory; their data types are part of the type, or checked before anything
//!   reaches the device.
//! * [`ops`] are plain functions under TTNN's names.
//! * [`Device::capture`] records what a stage does; [`Trace::replay`] does it again without asking anything.
//! * [`suite`] holds each op's cases and tolerance, written once, for every device there is.
//!
//! ```
//! use tt_ops::{ops, Bfloat16, DataType, Device, Float32, Soft, Tensor, Weight};
//!
//! # fn main() -> tt_ops::Result<()> {
//! let device = Soft::builder().threads(2).open()?;
//! let w = Weight::from_out_in(&device, 64, 32, DataType::Bfloat8B, &[0.5f32; 64 * 32][..])?;
//! let gain = Tensor::<_, Float32>::from_span(&device, [32], &[1.0f32; 32])?;
//! let x = Tensor::<_, Float32>::zeros(&device, [1, 10, 32])?;
//!
//! let trace = device.capture(|_| -> tt_ops::Result<_> {
//!     let n: Tensor<_, Bfloat16> = ops::rms_norm(&x, ops::RmsNorm::new(1e-6).weight(&gain))?;
//!     let y: Tensor<_, Float32> = ops::linear(&n, &w, ops::Linear::new())?;
//!     Ok(y)
//! })?;
//! x.write(&[2.0f32; 320])?;
//! trace.replay()?;
//! assert!((trace.outputs().to_vector::<f32>()?[0] - 16.0).abs() < 0.1);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod captured;
pub mod codec;
mod compute;
mod device;
pub mod diff;
mod dtype;
mod error;
mod layout;
pub mod metal;
pub mod op;
pub mod ops;
mod program;
mod shape;
pub mod soft;
mod spec;
pub mod suite;
mod tensor;
mod trace;
mod weight;

pub use captured::{CapturedOp, CapturedOperand, CapturedOps, CapturedSpec, OpTime, time_table};
pub use compute::{ComputeKernelConfig, MathFidelity};
pub use device::{CaptureOptions, Device, Input, Numerics, ReadAt};
pub use dtype::{
    Activation as ActivationType, Bfloat4B, Bfloat8B, Bfloat16, DataType, Dtype, Dynamic, Float, Float32,
    FloatKind, HostScalar, HostSlice, HostSliceMut, Int32, IntKind, Static, Uint32, UintKind,
};
pub use error::{Result, TtError};
/// The bfloat16 of host data.
pub use half::bf16;
pub use layout::{BufferType, CoreGrid, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout};
pub use metal::Metal;
pub use op::{Activation, BinaryOp, Op, UnaryOp};
pub use program::{MatmulBlocks, MatmulProgramConfig, SdpaProgramConfig};
pub use shape::{MAX_RANK, Shape};
pub use soft::Soft;
pub use spec::{TensorSpec, WeightOrder, WeightSpec};
pub use tensor::{Tensor, TensorRef};
pub use trace::{Capture, Trace};
pub use weight::Weight;
