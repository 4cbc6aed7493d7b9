//! Where a tensor is placed, with the shards of those that leave them to the device.

use tt_sys::{BufferType as SysBuffer, MemoryConfig as SysMemory, ShardLayout, Shards};

use super::program::TILE;
use crate::error::{Result, TtError};
use crate::layout::{BufferType, CoreGrid, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout};
use crate::spec::TensorSpec;

/// Cores that width shards are spread over at most: with more, what is sent between them costs more than they save.
const CORES: u32 = 32;

/// `spec`'s placement on a device of `grid` cores, for the op `op`.
pub(super) fn placement(op: &'static str, spec: &TensorSpec, grid: (u32, u32)) -> Result<SysMemory> {
    let MemoryConfig { buffer_type, memory_layout, shard_spec } = spec.memory_config;
    let buffer_type = match buffer_type {
        BufferType::Dram => SysBuffer::Dram,
        BufferType::L1 => SysBuffer::L1,
    };
    let layout = match memory_layout {
        TensorMemoryLayout::Interleaved => return Ok(SysMemory { buffer_type, shards: None }),
        TensorMemoryLayout::HeightSharded => ShardLayout::Height,
        TensorMemoryLayout::WidthSharded => ShardLayout::Width,
        TensorMemoryLayout::BlockSharded => ShardLayout::Block,
    };
    let shard_spec = match (shard_spec, layout) {
        (Some(given), _) => given,
        (None, ShardLayout::Width) => {
            let Some(chosen) = width_shards(spec, grid) else { return Ok(SysMemory::DRAM) };
            chosen
        }
        (None, _) => {
            return Err(TtError::argument(op, format!("{memory_layout:?} without shards"), "one"));
        }
    };
    let ShardSpec { grid: CoreGrid { x, y }, shape: [height, width] } = shard_spec;
    if x > grid.0 || y > grid.1 {
        let wanted = format!("at most {}×{}", grid.0, grid.1);
        return Err(TtError::argument(op, format!("shards on {x}×{y} cores"), wanted));
    }
    Ok(SysMemory { buffer_type, shards: Some(Shards { layout, grid: (x, y), shape: (height, width) }) })
}

/// The columns of a tensor in tiles over as many cores as share them evenly; nothing where a shard would be too large.
fn width_shards(spec: &TensorSpec, grid: (u32, u32)) -> Option<ShardSpec> {
    let [a, b, rows, columns] = spec.shape.as_rank4();
    // TTNN's norms of shards take what pads a tile for values.
    if spec.layout != Layout::Tile || !columns.is_multiple_of(TILE) {
        return None;
    }
    let (rows, tiles) = (a * b * rows.next_multiple_of(TILE), columns.div_ceil(TILE) as u32);
    let grids = (1..=grid.0).flat_map(|x| (1..=grid.1).map(move |y| CoreGrid::new(x, y)));
    let even = grids.filter(|grid| grid.num_cores() <= CORES && tiles.is_multiple_of(grid.num_cores()));
    // Of as many cores, those in the longest rows.
    let cores = even.max_by_key(|grid| (grid.num_cores(), grid.x))?;
    let width = tiles / cores.num_cores() * TILE as u32;
    let fits = spec.dtype.bytes(rows * width as usize) <= MemoryConfig::SHARD_BYTES;
    fits.then_some(ShardSpec { grid: cores, shape: [rows as u32, width] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DataType;

    const P150A: (u32, u32) = (11, 10);

    fn stream(rows: usize, columns: usize) -> TensorSpec {
        let spec = TensorSpec::new([1, rows, columns], DataType::Float32);
        spec.with_memory_config(MemoryConfig::L1_WIDTH_SHARDED)
    }

    #[test]
    fn columns_of_few_rows_are_shared_evenly() {
        let placed = placement("to_memory_config", &stream(49, 1536), P150A).unwrap();
        let shards = Shards { layout: ShardLayout::Width, grid: (8, 3), shape: (64, 64) };
        assert_eq!(placed, SysMemory::sharded(shards));
        let placed = placement("to_memory_config", &stream(49, 64), P150A).unwrap();
        assert_eq!(placed.shards.unwrap().grid, (2, 1));
    }

    #[test]
    fn shards_that_would_be_too_large_or_end_within_a_tile_are_left_out() {
        for (rows, columns) in [(1024, 2048), (49, 48)] {
            assert_eq!(
                placement("to_memory_config", &stream(rows, columns), P150A).unwrap(),
                SysMemory::DRAM
            );
        }
    }

    #[test]
    fn shards_on_cores_that_are_not_there_are_refused() {
        let shards = ShardSpec { grid: CoreGrid::new(12, 1), shape: [64, 128] };
        let place = MemoryConfig::sharded(TensorMemoryLayout::WidthSharded, shards);
        let error = placement("linear", &stream(49, 1536).with_memory_config(place), P150A).unwrap_err();
        assert_eq!(error.to_string().matches("12×1").count(), 1, "{error}");
    }
}
