//! Layout and memory configuration of a tensor (`ttnn::Layout`, `ttnn::MemoryConfig`).

use serde::Serialize;

use crate::error::{Result, TtError};
use crate::shape::Shape;

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

/// A rectangle of cores at the origin (`ttnn::CoreGrid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct CoreGrid {
    /// Cores in x.
    pub x: u32,
    /// Cores in y.
    pub y: u32,
}

impl CoreGrid {
    /// `x` times `y` cores.
    pub const fn new(x: u32, y: u32) -> Self {
        Self { x, y }
    }

    /// How many cores.
    pub const fn num_cores(self) -> u32 {
        self.x.saturating_mul(self.y)
    }

    /// Refuses a grid of no cores.
    pub(crate) fn check(self, op: &'static str) -> Result<()> {
        if self.num_cores() > 0 {
            return Ok(());
        }
        Err(TtError::argument(op, format!("a core grid of {}×{}", self.x, self.y), "at least one core"))
    }
}

/// The shards of a tensor (`ttnn::ShardSpec`), one per core, over the cores row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ShardSpec {
    /// The cores.
    pub grid: CoreGrid,
    /// Rows and columns of a shard. Leading extents count as rows.
    pub shape: [u32; 2],
}

/// Placement of a tensor (`ttnn::MemoryConfig`). The software device has one memory: it records the placement, shows
/// it in captured ops and computes the same bytes for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct MemoryConfig {
    /// DRAM or L1.
    pub buffer_type: BufferType,
    /// Interleaved or sharded.
    pub memory_layout: TensorMemoryLayout,
    /// The shards; the device chooses those of a width-sharded tensor without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_spec: Option<ShardSpec>,
}

impl MemoryConfig {
    /// `ttnn::DRAM_MEMORY_CONFIG`.
    pub const DRAM: Self = Self {
        buffer_type: BufferType::Dram,
        memory_layout: TensorMemoryLayout::Interleaved,
        shard_spec: None,
    };
    /// `ttnn::L1_MEMORY_CONFIG`.
    pub const L1: Self = Self { buffer_type: BufferType::L1, ..Self::DRAM };
    /// `ttnn::L1_WIDTH_SHARDED_MEMORY_CONFIG`: columns over cores that the device chooses. For streams of few rows: a tensor of
    /// which a core would get more than [`SHARD_BYTES`](Self::SHARD_BYTES), one whose columns are no whole tiles, and one in
    /// [`Layout::RowMajor`] is placed interleaved in DRAM.
    pub const L1_WIDTH_SHARDED: Self = Self { memory_layout: TensorMemoryLayout::WidthSharded, ..Self::L1 };
    /// The largest shard, in bytes, that a device chooses by itself.
    pub const SHARD_BYTES: usize = 128 << 10;

    /// Sharded in L1.
    pub const fn sharded(memory_layout: TensorMemoryLayout, shard_spec: ShardSpec) -> Self {
        Self { buffer_type: BufferType::L1, memory_layout, shard_spec: Some(shard_spec) }
    }

    /// Whether `shape` in `layout` can be placed so.
    ///
    /// # Errors
    /// Shards of an interleaved tensor; rows or rectangles per core without the shards; shards that do not cover the tensor, or are
    /// no whole tiles of one in tiles.
    pub(crate) fn check(&self, op: &'static str, shape: Shape, layout: Layout) -> Result<()> {
        use TensorMemoryLayout::{BlockSharded, HeightSharded, Interleaved};
        let Some(ShardSpec { grid, shape: [height, width] }) = self.shard_spec else {
            return match self.memory_layout {
                HeightSharded | BlockSharded => Err(TtError::argument(
                    op,
                    format!("{:?} without shards", self.memory_layout),
                    "a shard spec",
                )),
                _ => Ok(()),
            };
        };
        let refused = |got: String, wanted: String| Err(TtError::argument(op, got, wanted));
        if self.memory_layout == Interleaved {
            return refused("shards of an interleaved tensor".into(), "a sharded layout".into());
        }
        let shards =
            format!("{:?} shards of {height}×{width} on {}×{} cores", self.memory_layout, grid.x, grid.y);
        if grid.num_cores() > MOST_CORES {
            return refused(shards, format!("at most {MOST_CORES} cores"));
        }
        let tile = if layout == Layout::Tile { TILE } else { 1 };
        let whole = |extent: u32| extent > 0 && extent.is_multiple_of(tile);
        if grid.num_cores() == 0 || !whole(height) || !whole(width) {
            return refused(shards, format!("at least one core, and multiples of {tile}"));
        }
        let [a, b, rows, columns] = shape.as_rank4();
        let rows = (a * b) as u64 * rows.next_multiple_of(tile as usize) as u64;
        let (down, across) = match self.memory_layout {
            TensorMemoryLayout::HeightSharded => (grid.num_cores(), 1),
            TensorMemoryLayout::WidthSharded => (1, grid.num_cores()),
            _ => (grid.y, grid.x),
        };
        let covered = [(down, height), (across, width)].map(|(n, extent)| u64::from(n) * u64::from(extent));
        if covered[0] < rows || covered[1] < columns as u64 {
            return refused(shards, format!("as many as cover {rows} rows and {columns} columns"));
        }
        Ok(())
    }
}

/// Side of a tile.
const TILE: u32 = 32;
/// More than any card has.
const MOST_CORES: u32 = 1 << 16;

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
