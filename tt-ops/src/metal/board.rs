//! The boards that the ops were laid out for. A Blackhole die has 14 columns of 10 cores, of which firmware may turn off two
//! ("harvesting") and tt-metal takes one for dispatch
//! (<https://github.com/tenstorrent/tt-metal/blob/main/tt_metal/core_descriptors/blackhole_140_arch.yaml>).

use crate::error::{Result, TtError};
use crate::layout::CoreGrid;

/// What a card is, by what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Board {
    /// Short name.
    pub name: &'static str,
    /// Cores that compute.
    pub grid: CoreGrid,
    /// Banks of DRAM.
    pub dram_banks: u32,
}

/// Every board that is opened.
pub const BOARDS: [Board; 3] = [
    Board { name: "p150a", grid: CoreGrid::new(11, 10), dram_banks: 8 },
    // tt-metal's mock device.
    Board { name: "one column off", grid: CoreGrid::new(12, 10), dram_banks: 8 },
    // The functional simulator, and a p150a with firmware before 19.5.0.
    Board { name: "no column off", grid: CoreGrid::new(13, 10), dram_banks: 8 },
];

impl Board {
    /// The board of this architecture, cores and banks.
    ///
    /// # Errors
    /// One that is not in [`BOARDS`].
    pub fn of(arch: &str, grid: CoreGrid, dram_banks: u32) -> Result<Self> {
        let found =
            BOARDS.into_iter().find(|b| arch == "blackhole" && b.grid == grid && b.dram_banks == dram_banks);
        found.ok_or_else(|| {
            let known = BOARDS.map(|b| format!("{}×{} and {}", b.grid.x, b.grid.y, b.dram_banks)).join(", ");
            TtError::Device {
                device: "metal",
                what: format!(
                    "{arch} with {}×{} cores and {dram_banks} DRAM banks, wanted blackhole with one of {known}",
                    grid.x, grid.y
                ),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_known_by_their_cores_and_banks() {
        assert_eq!(Board::of("blackhole", CoreGrid::new(11, 10), 8).unwrap().name, "p150a");
        assert_eq!(Board::of("blackhole", CoreGrid::new(13, 10), 8).unwrap().name, "no column off");
    }

    #[test]
    fn other_boards_are_refused_with_what_would_do() {
        for (arch, grid, banks) in
            [("wormhole_b0", (8, 8), 12), ("wormhole_b0", (11, 10), 8), ("blackhole", (11, 10), 7)]
        {
            let error = Board::of(arch, CoreGrid::new(grid.0, grid.1), banks).unwrap_err().to_string();
            assert!(error.contains(arch) && error.contains("11×10 and 8"), "{error}");
        }
    }
}
