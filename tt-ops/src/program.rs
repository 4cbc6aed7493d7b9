//! How one op is spread over the card's cores, where the device's own rule is not wanted
//! (`ttnn::operations::matmul::MatmulProgramConfig`, `ttnn::operations::transformer::SDPAProgramConfig`).
//!
//! The software device records these, shows them in captured ops and computes the same bytes with and without.

use serde::Serialize;

use crate::error::{Result, TtError};
use crate::layout::CoreGrid;

/// Blocks of a matmul. Extents are in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct MatmulBlocks {
    /// Cores.
    pub compute_with_storage_grid_size: CoreGrid,
    /// Columns of `x` that are read at a time; divides its columns.
    pub in0_block_w: u32,
    /// Rows of a subblock.
    pub out_subblock_h: u32,
    /// Columns of a subblock; with `fp32_dest_acc_en` a subblock has at most 4 tiles.
    pub out_subblock_w: u32,
    /// Rows of a core.
    #[serde(rename = "per_core_M")]
    pub per_core_m: u32,
    /// Columns of a core.
    #[serde(rename = "per_core_N")]
    pub per_core_n: u32,
}

impl MatmulProgramConfig {
    /// Refuses blocks of nothing.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        let (Self::MultiCast(blocks) | Self::MultiCast1D(blocks)) = self;
        blocks.compute_with_storage_grid_size.check(op)?;
        let MatmulBlocks { in0_block_w, out_subblock_h, out_subblock_w, per_core_m, per_core_n, .. } = blocks;
        let extents = [in0_block_w, out_subblock_h, out_subblock_w, per_core_m, per_core_n];
        if extents.iter().all(|extent| **extent > 0) {
            return Ok(());
        }
        Err(TtError::argument(op, format!("blocks of {extents:?} tiles"), "at least 1 each"))
    }
}

impl SdpaProgramConfig {
    /// Refuses chunks that are no whole tiles.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        self.compute_with_storage_grid_size.check(op)?;
        let chunks = [self.q_chunk_size, self.k_chunk_size];
        if chunks.iter().all(|chunk| *chunk > 0 && chunk.is_multiple_of(32)) {
            return Ok(());
        }
        Err(TtError::argument(op, format!("chunks of {chunks:?}"), "multiples of 32"))
    }
}

/// How a matmul is spread over cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum MatmulProgramConfig {
    /// Rows over y, columns over x (`MatmulMultiCoreReuseMultiCastProgramConfig`).
    MultiCast(MatmulBlocks),
    /// Columns over all cores, `x` multicast (`MatmulMultiCoreReuseMultiCast1DProgramConfig`).
    MultiCast1D(MatmulBlocks),
}

/// How attention is spread over cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct SdpaProgramConfig {
    /// Cores.
    pub compute_with_storage_grid_size: CoreGrid,
    /// Queries of one piece of work, a multiple of 32.
    pub q_chunk_size: u32,
    /// Keys that are attended to at a time, a multiple of 32.
    pub k_chunk_size: u32,
}
