//! What a tensor holds and where, and how precisely an operation computes: TTNN's types of these names.

use crate::bridge::ffi;

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

/// `ttnn::Layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Rows one after another.
    RowMajor = 0,
    /// Tiles of 32 × 32.
    Tile = 1,
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

/// How a sharded tensor is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShardLayout {
    /// Blocks of rows.
    Height = 1,
    /// Blocks of columns.
    Width = 2,
    /// Rectangles.
    Block = 3,
}

/// One shard per core of a grid that starts at core (0, 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shard {
    /// How the tensor is cut.
    pub layout: ShardLayout,
    /// Cores in x and y.
    pub grid: (u32, u32),
    /// Rows and columns of a shard, in elements.
    pub shape: (u32, u32),
}

/// `ttnn::MemoryConfig`: interleaved where there is no shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryConfig {
    /// Which memory.
    pub buffer_type: BufferType,
    /// How it is sharded, if it is.
    pub shard: Option<Shard>,
}

impl MemoryConfig {
    /// `ttnn::DRAM_MEMORY_CONFIG`.
    pub const DRAM: Self = Self { buffer_type: BufferType::Dram, shard: None };
    /// `ttnn::L1_MEMORY_CONFIG`.
    pub const L1: Self = Self { buffer_type: BufferType::L1, shard: None };

    pub(crate) fn to_ffi(self) -> ffi::Placement {
        let shard = self.shard;
        ffi::Placement {
            buffer_type: self.buffer_type as u8,
            memory_layout: shard.map_or(0, |s| s.layout as u8),
            grid_x: shard.map_or(0, |s| s.grid.0),
            grid_y: shard.map_or(0, |s| s.grid.1),
            shard_rows: shard.map_or(0, |s| s.shape.0),
            shard_columns: shard.map_or(0, |s| s.shape.1),
        }
    }

    fn from_ffi(p: ffi::Placement) -> Self {
        let layout = match p.memory_layout {
            1 => Some(ShardLayout::Height),
            2 => Some(ShardLayout::Width),
            3 => Some(ShardLayout::Block),
            _ => None,
        };
        let grid = (p.grid_x, p.grid_y);
        Self {
            buffer_type: if p.buffer_type == BufferType::L1 as u8 {
                BufferType::L1
            } else {
                BufferType::Dram
            },
            shard: layout.map(|layout| Shard { layout, grid, shape: (p.shard_rows, p.shard_columns) }),
        }
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

    pub(crate) fn from_ffi(spec: ffi::Spec) -> Self {
        let dtype = match spec.dtype {
            1 => DataType::Float32,
            2 => DataType::Uint32,
            3 => DataType::Bfloat8B,
            4 => DataType::Bfloat4B,
            5 => DataType::Int32,
            _ => DataType::Bfloat16,
        };
        Self {
            shape: spec.shape,
            dtype,
            layout: if spec.layout == Layout::Tile as u8 { Layout::Tile } else { Layout::RowMajor },
            memory_config: MemoryConfig::from_ffi(spec.placement),
        }
    }
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
