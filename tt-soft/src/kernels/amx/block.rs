//! A block of a matmul with AMX: 1x2 or 2x2 tiles of fp32 sums, over a run of K.
//!
//! A is row-major: 16 words of a row are a row of an A tile. 16 words of K of a panel are two B tiles side by side. The
//! sums come from memory and go back to it within one `asm!` block.
//!
//! Both products of attention have this form, with the scores transposed so that nothing is between them but the exponential:
//! keys are rows of A and 32 queries a panel for the scores, [key][query]; probabilities as pairs of keys, [pair][query],
//! are the next panel, and columns of V the rows of A for the result, [column][query].
//!
//! Binds: loading tiles; a step of 16 words has 4 loads and 4 products. Choices that were measured on another program of
//! this shape (Granite Rapids class): A streams past L1 (`tileloaddt1`: 17 instead of 22 cycles a product) while B stays
//! there; a `tilestored` at least every 8 steps, because one that comes later than about half a microsecond after the
//! last takes 0.3 us longer. This program's share of the peak has not been measured yet.

use super::super::PANEL;
use super::super::expand::BFP8_SCALES;
use super::Configured;
use std::arch::asm;
use std::arch::x86_64::_mm512_set1_epi32;

/// Rows of a tile, at most.
pub(crate) const SIDE: usize = 16;
/// Words of K in a step.
pub(crate) const STEP_WORDS: usize = 16;
/// Floats of a tile row of sums, two tiles side by side: [SIDE][PANEL], however many rows a tile has.
pub(crate) const TILE_FLOATS: usize = SIDE * PANEL;

/// Steps of a sum over `k` values, of which the last step may have few.
pub(crate) fn steps_of(k: usize) -> usize {
    k.div_ceil(2 * STEP_WORDS)
}

/// Words from one row of A to the next, of so many steps: an odd number of cache lines, so that the rows of a tile do not meet
/// in one set of L1.
pub(crate) fn pitch_of(steps: usize) -> usize {
    (steps | 1) * STEP_WORDS
}

/// What [`multiply`] multiplies.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// Rows of A: the first tile's, then the second's.
    pub a: *const u32,
    /// Words from one row of A to the next.
    pub lda: usize,
    /// Are there two tiles of rows?
    pub two: bool,
    /// Words of a panel, [k][PANEL].
    pub b: *const u32,
    /// Steps of [`STEP_WORDS`] words, at least one.
    pub steps: usize,
    /// Sums, [`TILE_FLOATS`] for each tile of rows. Rows that the tiles do not have are overwritten with anything.
    pub c: *mut f32,
    /// Add to the sums rather than overwrite them.
    pub accumulate: bool,
}

/// What is done between the products of a step.
#[derive(Clone, Copy)]
pub(crate) enum Beside {
    /// Nothing.
    Nothing,
    /// Ask for `lines` (4, 8, 16 or 32) cache lines per step, from `from` on.
    Prefetch { from: *const u8, lines: usize },
    /// Expand `rows` (2, 4, 8 or 16) rows of pairs per step from bfloat8_b to bf16, and ask for as many lines.
    Expand { rows: usize, from: *const u8, exponents: *const u8, to: *mut u32, ahead: *const u8 },
}

/// Multiplies a block.
///
/// # Safety
/// `a` reaches the rows of one or two tiles of `tiles.rows()` rows, `b` `steps * STEP_WORDS` rows and `c` its tiles,
/// exclusively; `from` and `exponents` reach `steps * rows` rows of pairs (64 and 4 bytes each) and `to` as many rows of
/// PANEL words, exclusively and 64-byte aligned. What is only asked for may lie anywhere. The CPU has AVX-512.
pub(crate) unsafe fn multiply(tiles: &Configured, block: &Block, beside: Beside) {
    /// The instance for these numbers of lines and rows.
    macro_rules! instance {
        ($lines:literal, $rows:literal, $extra:expr) => {
            if block.two {
                run::<2, $lines, $rows>(tiles, block, $extra)
            } else {
                run::<1, $lines, $rows>(tiles, block, $extra)
            }
        };
    }
    let none = std::ptr::null();
    let mut extra = Extra { ahead: none, from: none, exponents: none, to: std::ptr::null_mut() };
    // SAFETY: the caller's promise.
    unsafe {
        match beside {
            Beside::Nothing => instance!(0, 0, extra),
            Beside::Prefetch { from, lines } => {
                extra.ahead = from;
                match lines {
                    4 => instance!(4, 0, extra),
                    8 => instance!(8, 0, extra),
                    16 => instance!(16, 0, extra),
                    _ => instance!(32, 0, extra),
                }
            }
            Beside::Expand { rows, from, exponents, to, ahead } => {
                extra = Extra { ahead, from, exponents, to };
                match rows {
                    2 => instance!(0, 2, extra),
                    4 => instance!(0, 4, extra),
                    8 => instance!(0, 8, extra),
                    _ => instance!(0, 16, extra),
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Extra {
    ahead: *const u8,
    from: *const u8,
    exponents: *const u8,
    to: *mut u32,
}

/// One group of 16 pairs: even and odd weights to f32 by their scales, the upper halves of the two joined. The even
/// weight of k is the low byte of a pair, the odd one the high byte.
macro_rules! expand_group {
    ($pairs:literal, $even:literal, $odd:literal, $words:literal) => {
        concat!(
            "vpmovsxwd {odd}, ymmword ptr [{from} + ",
            $pairs,
            "]\n",
            "vpslld {even}, {odd}, 24\n",
            "vpsrad {even}, {even}, 24\n",
            "vpsrad {odd}, {odd}, 8\n",
            "vcvtdq2ps {even}, {even}\n",
            "vcvtdq2ps {odd}, {odd}\n",
            "movzx {t:e}, byte ptr [{exponents} + ",
            $even,
            "]\n",
            "vmulps {even}, {even}, dword ptr [{scales} + 4*{t}]{{1to16}}\n",
            "movzx {t:e}, byte ptr [{exponents} + ",
            $odd,
            "]\n",
            "vmulps {odd}, {odd}, dword ptr [{scales} + 4*{t}]{{1to16}}\n",
            "vpsrld {even}, {even}, 16\n",
            "vpternlogd {even}, {odd}, {upper}, 0xf8\n",
            "vmovdqa64 [{to} + ",
            $words,
            "], {even}"
        )
    };
}

/// A quarter of a step's lines.
macro_rules! prefetch_quarter {
    () => {
        ".rept {quarter}\n prefetcht1 [{ahead}]\n add {ahead}, 64\n .endr"
    };
}

/// # Safety
/// As [`multiply`]; `TILES` is 2 if `block.two`, else 1.
#[target_feature(enable = "avx512f")]
unsafe fn run<const TILES: usize, const LINES: usize, const ROWS: usize>(
    tiles: &Configured,
    block: &Block,
    extra: Extra,
) {
    const UPPER: i32 = 0xffff_0000_u32 as i32;
    // SAFETY: the caller's promise; what is written besides `c` and `to` are tiles, which compiled code does not use. The
    // store every 8 steps goes to the first tile of sums, whose contents are in tiles then and are stored at the end.
    unsafe {
        asm!(
            "test {t:e}, {t:e}",
            "jnz 2f",
            "tilezero tmm0", "tilezero tmm1",
            ".if {tiles} == 2",
            "tilezero tmm2", "tilezero tmm3",
            ".endif",
            "jmp 3f",
            "2:",
            "tileloadd tmm0, [{c} + {pitch}]", "tileloadd tmm1, [{c} + {pitch} + 64]",
            ".if {tiles} == 2",
            "tileloadd tmm2, [{c} + {pitch} + 2048]", "tileloadd tmm3, [{c} + {pitch} + 2112]",
            ".endif",
            "3:",
            "tileloaddt1 tmm4, [{a} + {lda}]",
            "tileloadd tmm6, [{b} + {pitch}]",
            prefetch_quarter!(),
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b} + {pitch} + 64]",
            prefetch_quarter!(),
            "tdpbf16ps tmm1, tmm4, tmm7",
            ".if {tiles} == 2",
            "tileloaddt1 tmm5, [{a2} + {lda}]",
            prefetch_quarter!(),
            "tdpbf16ps tmm2, tmm5, tmm6",
            prefetch_quarter!(),
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a2}, 64",
            ".else",
            prefetch_quarter!(),
            prefetch_quarter!(),
            ".endif",
            ".rept {rows}",
            "prefetcht1 [{ahead}]",
            expand_group!("0", "0", "2", "0"),
            expand_group!("32", "1", "3", "64"),
            "add {ahead}, 64", "add {from}, 64", "add {exponents}, 4", "add {to}, 128",
            ".endr",
            "add {a}, 64",
            "add {b}, 2048",
            "dec {steps}",
            "jz 4f",
            "test {steps:e}, 7",
            "jnz 3b",
            "tilestored [{c} + {pitch}], tmm7",
            "jmp 3b",
            "4:",
            "tilestored [{c} + {pitch}], tmm0", "tilestored [{c} + {pitch} + 64], tmm1",
            ".if {tiles} == 2",
            "tilestored [{c} + {pitch} + 2048], tmm2", "tilestored [{c} + {pitch} + 2112], tmm3",
            ".endif",
            tiles = const TILES,
            quarter = const LINES / 4,
            rows = const ROWS,
            t = inout(reg) usize::from(block.accumulate) => _,
            pitch = in(reg) PANEL * 4,
            c = in(reg) block.c,
            a = inout(reg) block.a => _,
            a2 = inout(reg) block.a.wrapping_add(tiles.rows() * block.lda) => _,
            lda = in(reg) block.lda * 4,
            b = inout(reg) block.b => _,
            steps = inout(reg) block.steps => _,
            ahead = inout(reg) extra.ahead => _,
            from = inout(reg) extra.from => _,
            exponents = inout(reg) extra.exponents => _,
            to = inout(reg) extra.to => _,
            scales = in(reg) BFP8_SCALES.as_ptr(),
            upper = in(zmm_reg) _mm512_set1_epi32(UPPER),
            even = out(zmm_reg) _,
            odd = out(zmm_reg) _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack)
        );
    }
}
