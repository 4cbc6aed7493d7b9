//! What a tensor holds and where, and how precisely an operation computes: TTNN's types of these names.

use crate::bridge::ffi;
use crate::error::{Error, Result};

/// `ttnn::DataType`, the ones that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataType {
    /// bfloat16.
    Bfloat16 = 0,
    /// IEEE single precision.
    Float32 = 1,
    /// 32-bit unsigned integers.
    Uint32 = 2,
    /// Blocks of 16 values with one exponent, 8 bits each; tiles only.
    Bfloat8B = 3,
    /// Blocks of 16 values with one exponent, 4 bits each; tiles only.
    Bfloat4B = 4,
    /// 32-bit signed integers.
    Int32 = 5,
}

impl DataType {
    const ALL: [Self; 6] =
        [Self::Bfloat16, Self::Float32, Self::Uint32, Self::Bfloat8B, Self::Bfloat4B, Self::Int32];
}

/// `ttnn::Layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Rows one after another.
    RowMajor = 0,
    /// Tiles of 32 × 32.
    Tile = 1,
}

impl Layout {
    const ALL: [Self; 2] = [Self::RowMajor, Self::Tile];
}

/// `ttnn::BufferType`, the ones that tensors are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BufferType {
    /// The card's DRAM.
    Dram = 0,
    /// The cores' local memory.
    L1 = 1,
}

impl BufferType {
    const ALL: [Self; 2] = [Self::Dram, Self::L1];
}

/// `ttnn::TensorMemoryLayout` of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShardLayout {
    /// Each core has some rows.
    Height = 1,
    /// Each core has some columns.
    Width = 2,
    /// Each core has a rectangle.
    Block = 3,
}

impl ShardLayout {
    const ALL: [Self; 3] = [Self::Height, Self::Width, Self::Block];
}

/// `ttnn::ShardSpec` on a rectangle of cores at the origin, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shards {
    /// What each core has.
    pub layout: ShardLayout,
    /// Cores in x and y.
    pub grid: (u32, u32),
    /// Rows and columns of a shard, in elements.
    pub shape: (u32, u32),
}

/// `ttnn::MemoryConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryConfig {
    /// Which memory.
    pub buffer_type: BufferType,
    /// Shards; interleaved where there are none.
    pub shards: Option<Shards>,
}

impl MemoryConfig {
    /// `ttnn::DRAM_MEMORY_CONFIG`.
    pub const DRAM: Self = Self { buffer_type: BufferType::Dram, shards: None };
    /// `ttnn::L1_MEMORY_CONFIG`.
    pub const L1: Self = Self { buffer_type: BufferType::L1, shards: None };

    /// Sharded in L1.
    pub fn sharded(shards: Shards) -> Self {
        Self { shards: Some(shards), ..Self::L1 }
    }

    pub(crate) fn to_ffi(self) -> ffi::Placement {
        const INTERLEAVED: u8 = 0;
        let (memory_layout, (grid_x, grid_y), (shard_height, shard_width)) =
            self.shards.map_or((INTERLEAVED, (0, 0), (0, 0)), |s| (s.layout as u8, s.grid, s.shape));
        let buffer_type = self.buffer_type as u8;
        ffi::Placement { buffer_type, memory_layout, grid_x, grid_y, shard_height, shard_width }
    }

    fn from_ffi(placement: ffi::Placement) -> Result<Self> {
        let ffi::Placement { buffer_type, memory_layout, grid_x, grid_y, shard_height, shard_width } =
            placement;
        let shards = match memory_layout {
            0 => None,
            code => Some(Shards {
                layout: named(&ShardLayout::ALL, |l| *l as u8 == code, "memory layout", code)?,
                grid: (grid_x, grid_y),
                shape: (shard_height, shard_width),
            }),
        };
        let is_it = |one: &BufferType| *one as u8 == buffer_type;
        Ok(Self { buffer_type: named(&BufferType::ALL, is_it, "memory", buffer_type)?, shards })
    }
}

/// `ttnn::TensorSpec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Logical shape.
    pub shape: Vec<u32>,
    /// Data type.
    pub dtype: DataType,
    /// Layout.
    pub layout: Layout,
    /// Placement.
    pub memory_config: MemoryConfig,
}

impl TensorSpec {
    /// In tiles, interleaved in DRAM.
    pub fn tiles(shape: &[u32], dtype: DataType) -> Self {
        Self { shape: shape.to_vec(), dtype, layout: Layout::Tile, memory_config: MemoryConfig::DRAM }
    }

    /// Row-major, interleaved in DRAM.
    pub fn rows(shape: &[u32], dtype: DataType) -> Self {
        Self { layout: Layout::RowMajor, ..Self::tiles(shape, dtype) }
    }

    /// Number of elements, without padding.
    pub fn volume(&self) -> usize {
        self.shape.iter().map(|&extent| extent as usize).product()
    }

    pub(crate) fn to_ffi(&self) -> ffi::Spec {
        ffi::Spec {
            shape: self.shape.clone(),
            dtype: self.dtype as u8,
            layout: self.layout as u8,
            placement: self.memory_config.to_ffi(),
        }
    }

    pub(crate) fn from_ffi(spec: ffi::Spec) -> Result<Self> {
        Ok(Self {
            shape: spec.shape,
            dtype: named(&DataType::ALL, |d| *d as u8 == spec.dtype, "data type", spec.dtype)?,
            layout: named(&Layout::ALL, |l| *l as u8 == spec.layout, "layout", spec.layout)?,
            memory_config: MemoryConfig::from_ffi(spec.placement)?,
        })
    }
}

/// What the C++ layer means by `code`.
fn named<T: Copy>(all: &[T], is_it: impl Fn(&T) -> bool, what: &str, code: u8) -> Result<T> {
    let found = all.iter().copied().find(|one| is_it(one));
    found.ok_or_else(|| Error::from_exception(&format!("{what} code {code}, wanted below {}", all.len())))
}

/// `MathFidelity`: how many passes the matrix engine makes over the mantissas of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MathFidelity {
    /// One.
    LoFi = 0,
    /// Two.
    HiFi2 = 1,
    /// Three.
    HiFi3 = 2,
    /// Four: bfloat16 products are exact.
    HiFi4 = 3,
}

/// `ttnn::DeviceComputeKernelConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComputeKernelConfig {
    /// Passes of the matrix engine.
    pub math_fidelity: MathFidelity,
    /// Whether vector functions may be approximate.
    pub math_approx_mode: bool,
    /// Whether sums are kept in fp32.
    pub fp32_dest_acc_en: bool,
    /// Whether partial sums are added in L1 by the packer.
    pub packer_l1_acc: bool,
}

impl ComputeKernelConfig {
    /// Products exact, sums in fp32.
    pub const HIFI4: Self = Self {
        math_fidelity: MathFidelity::HiFi4,
        math_approx_mode: false,
        fp32_dest_acc_en: true,
        packer_l1_acc: true,
    };

    pub(crate) fn to_ffi(self) -> ffi::Compute {
        ffi::Compute {
            fidelity: self.math_fidelity as u8,
            approximate: self.math_approx_mode,
            fp32_dest: self.fp32_dest_acc_en,
            packer_l1: self.packer_l1_acc,
        }
    }
}
