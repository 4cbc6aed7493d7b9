//! Products of tiles and nothing else: what the unit can do at most.

use super::{Configured, SIDE, STEP_WORDS};
use std::arch::asm;

/// Sums that are added to in turn: a product takes 52 cycles and can begin every 16.
const SUMS: usize = 4;
/// Floating-point operations of a product of full tiles.
pub(crate) const FLOPS: usize = 2 * SIDE * SIDE * 2 * STEP_WORDS;

/// Does `count` products of tiles of [`SIDE`] rows, all of one tile of A and one of B; gives an element of their sum, which is
/// 8 for each product.
///
/// # Safety
/// The CPU has AMX and its use is permitted, or it is emulated.
pub(crate) unsafe fn products(_tiles: &Configured, count: usize) -> f32 {
    /// Two bf16 of 1/2.
    const HALVES: u32 = 0x3f00_3f00;
    /// Bytes of a row of a tile.
    const ROW: usize = 64;
    let operands = [HALVES; SIDE * STEP_WORDS];
    let mut sums = [0f32; SUMS * SIDE * STEP_WORDS];
    // SAFETY: reads a tile of `operands`, writes four of `sums`; compiled code does not use tiles.
    unsafe {
        asm!(
            "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
            "tileloadd tmm4, [{operands} + {row}]",
            "tileloadd tmm6, [{operands} + {row}]",
            "test {rounds}, {rounds}",
            "jz 3f",
            "2:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm4, tmm6",
            "tdpbf16ps tmm3, tmm4, tmm6",
            "dec {rounds}",
            "jnz 2b",
            "3:",
            "test {rest}, {rest}",
            "jz 5f",
            "4:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "dec {rest}",
            "jnz 4b",
            "5:",
            "tilestored [{sums} + {row}], tmm0",
            "tilestored [{sums} + {row} + 1024], tmm1",
            "tilestored [{sums} + {row} + 2048], tmm2",
            "tilestored [{sums} + {row} + 3072], tmm3",
            operands = in(reg) operands.as_ptr(),
            sums = in(reg) sums.as_mut_ptr(),
            row = in(reg) ROW,
            rounds = inout(reg) count / SUMS => _,
            rest = inout(reg) count % SUMS => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack)
        );
    }
    sums.chunks_exact(SIDE * STEP_WORDS).map(|tile| tile[0]).sum()
}
