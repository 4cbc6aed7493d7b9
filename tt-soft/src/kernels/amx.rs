//! The matmul tile with AMX: up to 32 rows by 32 columns as 2x2 tiles of fp32 sums, two of A and two of B.
//!
//! Stable Rust has neither the intrinsics nor the feature detection of AMX, but inline assembly may name its registers as
//! clobbers. A tile's contents live within one `asm!` block only, from configuration to release, so that compiled code
//! can never come between. A is row-major here (`TileKernel::row_major_a`): 16 words of a row are a row of an A tile. A
//! panel's 16 words of K are two B tiles side by side. A run of 256 words is 64 products, short enough that the stores at
//! its end find the store path awake.
//!
//! Binds: loading tiles; per 16 words of K 4 loads and 4 products. Its share of the peak has not been measured yet.

use super::{PANEL, Tile, TileKernel};
use std::arch::asm;
use std::sync::OnceLock;

/// Rows of a tile, and words of a row.
const SIDE: usize = 16;
const ROWS: usize = 2 * SIDE;

pub(super) const TILE: TileKernel = TileKernel { max_rows: ROWS, row_major_a: true, run };

/// Does the CPU have AMX bf16, does the kernel let this process use it, and does it compute a known product right?
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| cpu_has_amx() && kernel_permits() && known_product_is_right()) || is_emulated()
}

/// Has a test made this CPU's lack of AMX good?
fn is_emulated() -> bool {
    #[cfg(all(any(test, feature = "amx-emulation"), target_os = "linux"))]
    return crate::amx_emulation::is_enabled();
    #[cfg(not(all(any(test, feature = "amx-emulation"), target_os = "linux")))]
    false
}

fn cpu_has_amx() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const OSXSAVE: u32 = 1 << 27;
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    /// Tile configuration and tile data are saved by the kernel.
    const TILE_STATE: u32 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    let enabled: u32;
    // SAFETY: XGETBV of register 0 is allowed where OSXSAVE is set.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _, options(nomem, nostack)) };
    features & AMX_BF16 != 0 && features & AMX_TILE != 0 && enabled & TILE_STATE == TILE_STATE
}

/// Asks Linux for the tile data state, which it gives to processes that ask (for all their threads).
#[cfg(target_os = "linux")]
fn kernel_permits() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers and changes only what this process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn kernel_permits() -> bool {
    false
}

/// One small product, so that an emulation that lacks something is noticed here rather than in a result.
pub(crate) fn known_product_is_right() -> bool {
    const WORDS: usize = SIDE;
    const ONE: u32 = 0x3f80;
    // Row r of A is r + 1 in every even k and 0 in every odd one; B is 1 everywhere.
    let a: Vec<u32> = (0..ROWS * WORDS).map(|i| ((i / WORDS + 1) as f32).to_bits() >> 16).collect();
    let b = [ONE << 16 | ONE; WORDS * PANEL];
    let mut c = [1f32; ROWS * PANEL];
    let tile = Tile {
        rows: ROWS - 1,
        words: WORDS,
        a: a.as_ptr(),
        lda: WORDS,
        b: b.as_ptr(),
        c: c.as_mut_ptr(),
        ldc: PANEL,
        accumulate: true,
    };
    // SAFETY: A has 32 rows of 16 words, B 16 of 32, C 32 of 32 floats; the CPU and the kernel were asked.
    unsafe { run(tile) };
    let want = |row: usize| if row + 1 < ROWS { (1 + (row + 1) * WORDS) as f32 } else { 1.0 };
    c.chunks_exact(PANEL).enumerate().all(|(row, c)| c.iter().all(|v| *v == want(row)))
}

/// The operand of `ldtilecfg`, as the processor's manual lays it out.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Config {
    /// C in tiles 0 and 1 (first rows), 2 and 3 (others), A in 4 and 5, B in 6 and 7.
    fn new(first: u8, second: u8) -> Self {
        const FULL: u8 = SIDE as u8;
        const ROW: u16 = 64;
        let mut config =
            Self { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        // A configured tile must have rows; the second pair is unused where there are 16 rows or fewer.
        let second = second.max(1);
        config.rows[..8].copy_from_slice(&[first, first, second, second, first, second, FULL, FULL]);
        config.row_bytes[..8].fill(ROW);
        config
    }
}

/// # Safety
/// As [`TileKernel::run`], with A row-major (row r at `a + r * lda`), `words` a positive multiple of 16 and `ldc` PANEL;
/// [`is_available`] says yes.
unsafe fn run(tile: Tile) {
    debug_assert!(tile.words.is_multiple_of(SIDE) && tile.words > 0 && tile.ldc == PANEL);
    let first = if tile.rows > SIDE { tile.rows.div_ceil(2) } else { tile.rows };
    let config = Config::new(first as u8, (tile.rows - first) as u8);
    // SAFETY: the caller's promise: the tiles touch `rows` rows of A and C and `words` rows of B, nothing else.
    unsafe {
        if tile.rows > SIDE {
            two_by_two(&tile, &config, first);
        } else {
            one_by_two(&tile, &config);
        }
    }
}

/// `asm!` of a block that configures, uses and releases all tiles.
macro_rules! tiles {
    ($($line:tt)*) => {
        asm!($($line)*,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack))
    };
}

/// Bytes from one row of B or C to the next.
const PANEL_BYTES: usize = PANEL * 4;

/// # Safety
/// As [`run`], with more than 16 rows of which `first` in the first tiles.
unsafe fn two_by_two(tile: &Tile, config: &Config, first: usize) {
    // SAFETY: as [`run`]. A streams past L1 (`tileloaddt1`), B stays there for the next rows.
    unsafe {
        tiles!(
            "ldtilecfg [{config}]",
            "test {accumulate:e}, {accumulate:e}",
            "jnz 2f",
            "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
            "jmp 3f",
            "2:",
            "tileloadd tmm0, [{c} + {s}]", "tileloadd tmm1, [{c} + {s} + 64]",
            "tileloadd tmm2, [{c1} + {s}]", "tileloadd tmm3, [{c1} + {s} + 64]",
            "3:",
            "tileloaddt1 tmm4, [{a} + {lda}]", "tileloadd tmm6, [{b} + {s}]", "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b} + {s} + 64]", "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloaddt1 tmm5, [{a1} + {lda}]", "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 64", "add {a1}, 64", "add {b}, 2048",
            "dec {steps}",
            "jnz 3b",
            "tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
            "tilestored [{c1} + {s}], tmm2", "tilestored [{c1} + {s} + 64], tmm3",
            "tilerelease",
            config = in(reg) config,
            accumulate = in(reg) u32::from(tile.accumulate),
            c = in(reg) tile.c,
            c1 = in(reg) tile.c.add(first * PANEL),
            s = in(reg) PANEL_BYTES,
            a = inout(reg) tile.a => _,
            a1 = inout(reg) tile.a.add(first * tile.lda) => _,
            lda = in(reg) tile.lda * 4,
            b = inout(reg) tile.b => _,
            steps = inout(reg) tile.words / SIDE => _
        );
    }
}

/// # Safety
/// As [`run`], with at most 16 rows.
unsafe fn one_by_two(tile: &Tile, config: &Config) {
    // SAFETY: as [`run`].
    unsafe {
        tiles!(
            "ldtilecfg [{config}]",
            "test {accumulate:e}, {accumulate:e}",
            "jnz 2f",
            "tilezero tmm0", "tilezero tmm1",
            "jmp 3f",
            "2:",
            "tileloadd tmm0, [{c} + {s}]", "tileloadd tmm1, [{c} + {s} + 64]",
            "3:",
            "tileloaddt1 tmm4, [{a} + {lda}]", "tileloadd tmm6, [{b} + {s}]", "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b} + {s} + 64]", "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a}, 64", "add {b}, 2048",
            "dec {steps}",
            "jnz 3b",
            "tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
            "tilerelease",
            config = in(reg) config,
            accumulate = in(reg) u32::from(tile.accumulate),
            c = in(reg) tile.c,
            s = in(reg) PANEL_BYTES,
            a = inout(reg) tile.a => _,
            lda = in(reg) tile.lda * 4,
            b = inout(reg) tile.b => _,
            steps = inout(reg) tile.words / SIDE => _
        );
    }
}
