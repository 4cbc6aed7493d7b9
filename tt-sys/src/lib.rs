//! The bridge to tt-metal's C++ API: a Tenstorrent card, its tensors, TTNN's operations and traces, as safe Rust.
//!
//! Everything but `Error` needs the feature `metal`, with which `build.rs` finds tt-metal and compiles the C++ layer
//! in `cpp/`; without it nothing C++ is compiled. See `docs/metal.md` for how to build.
//!
//! * A `Device` is one open card. It belongs to the thread that opened it, and so does all that is made from it:
//!   no handle is `Send`.
//! * A `Tensor` is memory on it. Handles may be dropped in any order, also after the device was closed.
//! * `ops` are TTNN's operations. What TTNN refuses is an `Error`, and nothing unwinds across the bridge. What it
//!   cannot recover from (a kernel that does not compile, a fault in a driver) ends the process.
#![cfg_attr(
    feature = "metal",
    doc = "
```no_run
use tt_sys::{ops, DataType, Device, OpenOptions, TensorSpec};
# fn main() -> tt_sys::Result<()> {
let device = Device::open(OpenOptions { trace_region_size: 16 << 20, ..OpenOptions::default() })?;
let x = device.from_floats(&TensorSpec::tiles(&[1, 1, 32, 64], DataType::Bfloat16), &[1.0; 32 * 64])?;
let w = device.from_floats(&TensorSpec::tiles(&[1, 1, 64, 32], DataType::Bfloat8B), &[0.5; 64 * 32])?;
let y = ops::linear(&x, &w, &ops::Linear::new(DataType::Bfloat16))?;
assert_eq!(y.to_floats()?[0], 32.0);
# device.close()
# }
```"
)]

mod error;

#[cfg(feature = "metal")]
mod bridge;
#[cfg(feature = "cpp-tests")]
pub mod cpp_tests;
#[cfg(feature = "metal")]
mod device;
#[cfg(feature = "metal")]
pub mod ops;
#[cfg(feature = "metal")]
mod spec;
#[cfg(feature = "metal")]
mod tensor;
#[cfg(feature = "metal")]
mod trace;

pub use error::{Error, Result};

#[cfg(feature = "metal")]
pub use device::{Device, DeviceFacts, MemoryUse, OpenOptions, Resources, version};
#[cfg(feature = "metal")]
pub use spec::{
    BufferType, ComputeKernelConfig, DataType, Layout, MathFidelity, MemoryConfig, ShardLayout, Shards,
    TensorSpec,
};
#[cfg(feature = "metal")]
pub use tensor::Tensor;
#[cfg(feature = "metal")]
pub use trace::Trace;
