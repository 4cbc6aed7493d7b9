//! Layout and memory configuration of a tensor (`ttnn::Layout`, `ttnn::MemoryConfig`).

use serde::Serialize;

/// How a tensor lies in memory. On the card it decides which ops can read a tensor; on the software device it is a
/// property that [`crate::ops::to_layout`] changes without moving data, and the same ops refuse the same layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Layout {
    /// Rows one after another: token ids, embedding tables.
    RowMajor,
    /// Tiles of 32×32 made of 16×16 faces: everything that is computed with.
    Tile,
}

/// Where a tensor's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BufferType {
    /// The card's DRAM.
    Dram,
    /// The cores' local memory.
    L1,
}

/// How a tensor is spread over banks or cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TensorMemoryLayout {
    /// Pages round-robin over all banks.
    Interleaved,
    /// Blocks of rows per core.
    HeightSharded,
    /// Blocks of columns per core.
    WidthSharded,
    /// Rectangles per core.
    BlockSharded,
}

/// Placement of a tensor (`ttnn::MemoryConfig`). The software device has one memory: it records the placement, shows
/// it in captured ops and computes the same bytes for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct MemoryConfig {
    /// DRAM or L1.
    pub buffer_type: BufferType,
    /// Interleaved or sharded.
    pub memory_layout: TensorMemoryLayout,
}

impl MemoryConfig {
    /// `ttnn::DRAM_MEMORY_CONFIG`.
    pub const DRAM: Self =
        Self { buffer_type: BufferType::Dram, memory_layout: TensorMemoryLayout::Interleaved };
    /// `ttnn::L1_MEMORY_CONFIG`.
    pub const L1: Self = Self { buffer_type: BufferType::L1, memory_layout: TensorMemoryLayout::Interleaved };
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self::DRAM
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::RowMajor => "ROW_MAJOR",
            Self::Tile => "TILE",
        })
    }
}
