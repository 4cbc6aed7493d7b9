//! How a linear is spread over cores, by a plain rule ("How the device works" in `docs/metal.md`). Never timed on a card.

use tt_sys::ops::{Blocks, ProgramConfig};

use crate::program::{MatmulBlocks, MatmulProgramConfig};

/// Side of a tile.
pub(super) const TILE: usize = 32;

/// Rows of tiles up to which the weight alone decides, so that its columns go over all cores.
const FEW_ROWS: u32 = 4;

/// Tiles of a subblock in a destination register that holds fp32.
const SUBBLOCK: u32 = 4;

/// Bytes of a core's L1 that a matmul's buffers may take.
const L1_BUDGET: u64 = 1 << 20;

/// Bytes of a tile of each operand.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileBytes {
    pub(super) x: u64,
    pub(super) w: u64,
    pub(super) out: u64,
}

/// A program config for `x [m, k] · w [k, n]` in tiles on `grid` cores; nothing where no block fits L1, which leaves the
/// choice to TTNN.
pub(super) fn config([m, k, n]: [u32; 3], grid: (u32, u32), bytes: TileBytes) -> Option<ProgramConfig> {
    let one = m <= FEW_ROWS;
    let (per_core_m, per_core_n, used) = if one {
        let per_core_n = n.div_ceil(grid.0 * grid.1);
        let cores = n.div_ceil(per_core_n);
        (m, per_core_n, (grid.0.min(cores), cores.div_ceil(grid.0)))
    } else {
        let (rows, columns) = (m.div_ceil(grid.1), n.div_ceil(grid.0));
        (rows, columns, (n.div_ceil(columns), m.div_ceil(rows)))
    };
    let in0_block_w = (1..=k).rev().filter(|w| k.is_multiple_of(*w)).find(|&w| {
        let (m, n, w) = (u64::from(per_core_m), u64::from(per_core_n), u64::from(w));
        // Both operands twice, the result, and its sums in fp32.
        w <= 16 && 2 * w * (m * bytes.x + n * bytes.w) + m * n * (bytes.out + 4096) <= L1_BUDGET
    })?;
    let out_subblock = subblock(per_core_m, per_core_n);
    let blocks = Blocks { grid: used, in0_block_w, out_subblock, per_core_m, per_core_n };
    Some(if one { ProgramConfig::Multicast1D(blocks) } else { ProgramConfig::Multicast(blocks) })
}

/// A program config that was asked for.
pub(super) fn given(config: MatmulProgramConfig) -> ProgramConfig {
    let blocks = |b: MatmulBlocks| Blocks {
        grid: (b.compute_with_storage_grid_size.x, b.compute_with_storage_grid_size.y),
        in0_block_w: b.in0_block_w,
        out_subblock: (b.out_subblock_h, b.out_subblock_w),
        per_core_m: b.per_core_m,
        per_core_n: b.per_core_n,
    };
    match config {
        MatmulProgramConfig::MultiCast(b) => ProgramConfig::Multicast(blocks(b)),
        MatmulProgramConfig::MultiCast1D(b) => ProgramConfig::Multicast1D(blocks(b)),
    }
}

/// The largest subblock: whole rows of a block before several rows.
fn subblock(m: u32, n: u32) -> (u32, u32) {
    let w = (1..=SUBBLOCK.min(n)).rev().find(|w| n.is_multiple_of(*w)).unwrap_or(1);
    let h = if w == n { (1..=SUBBLOCK / w).rev().find(|h| m.is_multiple_of(*h)).unwrap_or(1) } else { 1 };
    (h, w)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bfloat16 operands, fp32 result.
    const BYTES: TileBytes = TileBytes { x: 2048, w: 2048, out: 4096 };

    #[test]
    fn few_rows_spread_columns_over_all_cores() {
        let Some(ProgramConfig::Multicast1D(blocks)) = config([2, 48, 192], (11, 10), BYTES) else {
            panic!("not 1D")
        };
        assert_eq!((blocks.per_core_m, blocks.per_core_n, blocks.grid), (2, 2, (11, 9)));
        assert_eq!((blocks.in0_block_w, blocks.out_subblock), (16, (2, 2)));
    }

    #[test]
    fn many_rows_go_over_both_sides_of_the_grid() {
        let Some(ProgramConfig::Multicast(blocks)) = config([10, 64, 128], (11, 10), BYTES) else {
            panic!("not 2D")
        };
        assert_eq!((blocks.per_core_m, blocks.per_core_n, blocks.grid), (1, 12, (11, 10)));
        assert!(64 % blocks.in0_block_w == 0 && blocks.out_subblock == (1, 4), "{blocks:?}");
    }

    #[test]
    fn blocks_that_no_core_holds_are_left_to_ttnn() {
        assert_eq!(config([4096, 64, 4096], (2, 2), BYTES), None);
    }
}
