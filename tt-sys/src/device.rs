//! Opening and asking a card.

use std::rc::Rc;

use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::error::Result;
use crate::spec::{BufferType, TensorSpec};
use crate::tensor::Tensor;
use crate::trace::Trace;

/// How to open a card (arguments of `ttnn::open_mesh_device`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Which card.
    pub device_id: i32,
    /// Bytes of L1 per core set aside for small buffers.
    pub l1_small_size: usize,
    /// Bytes of DRAM set aside for traces; without them nothing can be captured.
    pub trace_region_size: usize,
}

/// What a card says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `blackhole`, `wormhole_b0`.
    pub arch: String,
    /// Cores that compute and store, in x and y.
    pub grid: (u32, u32),
    /// Banks of DRAM.
    pub dram_banks: u32,
    /// Bytes in each of them.
    pub dram_bank_bytes: u64,
    /// Bytes of local memory of a core.
    pub l1_bytes: u64,
    /// Clock of the cores.
    pub clock_mhz: u32,
}

/// How full a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Banks: of DRAM, or cores.
    pub banks: u64,
    /// Bytes per bank.
    pub total_per_bank: u64,
    /// Bytes in use per bank.
    pub allocated_per_bank: u64,
    /// Longest free stretch of a bank, in bytes.
    pub largest_free_per_bank: u64,
}

/// What operations need of a core's local memory, as TTNN plans it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Peak bytes of circular buffers per core.
    pub circular_buffers: u64,
    /// Peak bytes of tensors in L1 per core.
    pub l1_buffers: u64,
    /// Peak bytes of both together.
    pub l1_total: u64,
}

/// tt-metal's version, as the crate was built against it.
pub fn version() -> Result<String> {
    Ok(ffi::runtime_version()?)
}

/// An open card. Closed when the last of the device and its traces is dropped, or by [`close`](Self::close); tensors
/// do not keep it open.
pub struct Device {
    handle: Rc<UniquePtr<ffi::Device>>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", if self.is_open() { "open" } else { "closed" })
    }
}

impl Device {
    /// Opens a card as a mesh of one, with its program cache on.
    ///
    /// # Errors
    /// No such card; one that does not answer, or has no room for the trace region; a runtime that does not find its kernels
    /// (`TT_METAL_RUNTIME_ROOT`).
    pub fn open(options: OpenOptions) -> Result<Self> {
        let OpenOptions { device_id, l1_small_size, trace_region_size } = options;
        let handle = ffi::open_device(&ffi::OpenOptions { device_id, l1_small_size, trace_region_size })?;
        Ok(Self { handle: Rc::new(handle) })
    }

    pub(crate) fn ffi(&self) -> &ffi::Device {
        &self.handle
    }

    pub(crate) fn handle(&self) -> &Rc<UniquePtr<ffi::Device>> {
        &self.handle
    }

    /// Frees all tensors and traces and closes the card. Handles to them may live on; using them is an error.
    pub fn close(&self) -> Result<()> {
        Ok(ffi::close_device(self.ffi())?)
    }

    /// Whether the card was not closed yet.
    pub fn is_open(&self) -> bool {
        ffi::device_is_open(self.ffi()).unwrap_or(false)
    }

    /// What the card says of itself.
    pub fn facts(&self) -> Result<DeviceFacts> {
        let facts = ffi::device_facts(self.ffi())?;
        Ok(DeviceFacts {
            arch: facts.arch,
            grid: (facts.grid_x, facts.grid_y),
            dram_banks: facts.dram_banks,
            dram_bank_bytes: facts.dram_bank_bytes,
            l1_bytes: facts.l1_bytes,
            clock_mhz: facts.clock_mhz,
        })
    }

    /// Waits until everything that was sent is done.
    pub fn synchronize(&self) -> Result<()> {
        Ok(ffi::synchronize(self.ffi())?)
    }

    /// How full DRAM or L1 is.
    pub fn memory_use(&self, buffer_type: BufferType) -> Result<MemoryUse> {
        self.memory_use_of(buffer_type as u8)
    }

    /// How full the trace region is.
    pub fn trace_region_use(&self) -> Result<MemoryUse> {
        /// The bridge's code for it.
        const TRACE: u8 = 2;
        self.memory_use_of(TRACE)
    }

    fn memory_use_of(&self, code: u8) -> Result<MemoryUse> {
        let used = ffi::memory_use(self.ffi(), code)?;
        Ok(MemoryUse {
            banks: used.banks,
            total_per_bank: used.total_per_bank,
            allocated_per_bank: used.allocated_per_bank,
            largest_free_per_bank: used.largest_free_per_bank,
        })
    }

    /// From here on TTNN plans operations and runs none (`ttnn::graph`, `NO_DISPATCH`).
    pub fn begin_query(&self) -> Result<()> {
        Ok(ffi::begin_query(self.ffi())?)
    }

    /// Ends it and says what the operations since [`begin_query`](Self::begin_query) need.
    pub fn end_query(&self) -> Result<Resources> {
        let used = ffi::end_query(self.ffi())?;
        Ok(Resources {
            circular_buffers: used.circular_buffers,
            l1_buffers: used.l1_buffers,
            l1_total: used.l1_total,
        })
    }

    /// Asks TTNN what the operations of `body` need, without running them.
    ///
    /// # Errors
    /// What an operation refuses.
    pub fn query<O>(&self, body: impl FnOnce() -> Result<O>) -> Result<(O, Resources)> {
        self.begin_query()?;
        let out = body();
        let needs = self.end_query()?;
        Ok((out?, needs))
    }

    /// Runs `body` and says how many programs TTNN sent to the card for it.
    ///
    /// # Errors
    /// A count that is going on.
    pub fn counting_programs<O>(&self, body: impl FnOnce() -> O) -> Result<(O, u64)> {
        ffi::count_programs(self.ffi())?;
        let out = body();
        Ok((out, ffi::programs_counted(self.ffi())?))
    }

    /// A tensor of row-major floats, rounded to the data type of `spec`.
    ///
    /// It lies at the far end of DRAM, where results of operations do not come: a trace, which writes wherever it wrote
    /// when it was captured, never overwrites it.
    ///
    /// # Errors
    /// Another number of values; a data type of integers; no room.
    pub fn from_floats(&self, spec: &TensorSpec, values: &[f32]) -> Result<Tensor> {
        Ok(Tensor::new(ffi::from_floats(self.ffi(), &spec.to_ffi(), values)?))
    }

    /// [`from_floats`](Self::from_floats) for `uint32`.
    pub fn from_u32(&self, spec: &TensorSpec, values: &[u32]) -> Result<Tensor> {
        Ok(Tensor::new(ffi::from_u32(self.ffi(), &spec.to_ffi(), values)?))
    }

    /// [`from_floats`](Self::from_floats) for `int32`.
    pub fn from_i32(&self, spec: &TensorSpec, values: &[i32]) -> Result<Tensor> {
        Ok(Tensor::new(ffi::from_i32(self.ffi(), &spec.to_ffi(), values)?))
    }

    /// A tensor whose values are not set yet, placed like those of [`from_floats`](Self::from_floats).
    pub fn allocate(&self, spec: &TensorSpec) -> Result<Tensor> {
        Ok(Tensor::new(ffi::allocate(self.ffi(), &spec.to_ffi())?))
    }

    /// A tensor from a `.tensorbin` file that [`Tensor::dump`] wrote.
    ///
    /// # Errors
    /// A file that is not there or not one.
    pub fn load(&self, path: &str) -> Result<Tensor> {
        Ok(Tensor::new(ffi::load_tensor(self.ffi(), path)?))
    }

    /// Starts recording operations. They must have run once before, so that their kernels are compiled; nothing may be
    /// read or written meanwhile.
    ///
    /// # Errors
    /// A capture that is going on; a device without a trace region.
    pub fn begin_trace(&self) -> Result<Trace> {
        Ok(Trace::new(self, ffi::begin_trace(self.ffi())?))
    }
}
