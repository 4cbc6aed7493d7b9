//! AMX: is it there and allowed, how its tiles are configured, and the blocks of a matmul that are done with it.
//!
//! Stable Rust has neither the intrinsics nor the feature detection of AMX, but inline assembly may name its registers as
//! clobbers. Compiled code never touches them, so a configuration stays from [`Configured::new`] to its end; what tiles
//! hold does not outlive an `asm!` block.

mod attention;
mod block;
pub(crate) mod peak;

pub(crate) use attention::{pair_up, scale_columns, split_columns, transpose};
pub(crate) use block::{Beside, Block, SIDE, STEP_WORDS, TILE_FLOATS, multiply, pitch_of, steps_of};

use super::PANEL;
use std::arch::asm;
use std::marker::PhantomData;
use std::sync::OnceLock;

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
    const ONE: u32 = 0x3f80;
    const ROWS: usize = 13;
    // Row r of A is r + 1 in every even k and 0 in every odd one; B is 1 everywhere.
    let a: Vec<u32> =
        (0..2 * ROWS * STEP_WORDS).map(|i| ((i / STEP_WORDS + 1) as f32).to_bits() >> 16).collect();
    let b = [ONE << 16 | ONE; STEP_WORDS * PANEL];
    let mut c = [1f32; 2 * TILE_FLOATS];
    let block = Block {
        a: a.as_ptr(),
        lda: STEP_WORDS,
        two: true,
        b: b.as_ptr(),
        steps: 1,
        c: c.as_mut_ptr(),
        accumulate: true,
    };
    // SAFETY: A has 26 rows of 16 words, B 16 of 32, C two tiles; the CPU and the kernel were asked.
    unsafe { multiply(&Configured::new(ROWS), &block, Beside::Nothing) };
    c.chunks_exact(TILE_FLOATS).enumerate().all(|(tile, c)| {
        c.chunks_exact(PANEL).take(ROWS).enumerate().all(|(row, c)| {
            let want = (1 + (tile * ROWS + row + 1) * STEP_WORDS) as f32;
            c.iter().all(|v| *v == want)
        })
    })
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

/// This thread's tiles are configured: sums in tiles 0 and 1 (first rows), 2 and 3 (next rows), A in 4 and 5, all of
/// them with the same number of rows, and B in 6 and 7.
pub(crate) struct Configured {
    rows: usize,
    /// Only of the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Configured {
    /// Configures tiles of `rows` rows, 1 to 16.
    ///
    /// # Safety
    /// [`is_available`] says yes, or is being answered. There is one on a thread at a time.
    pub(crate) unsafe fn new(rows: usize) -> Self {
        /// Bytes of a row.
        const ROW: u16 = 64;
        let rows = rows.clamp(1, SIDE);
        let (a, b) = (rows as u8, SIDE as u8);
        let mut config =
            Config { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        config.rows[..8].copy_from_slice(&[a, a, a, a, a, a, b, b]);
        config.row_bytes[..8].fill(ROW);
        // SAFETY: reads the 64 bytes of `config`; compiled code does not use tiles.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const config,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
        }
        Self { rows, thread: PhantomData }
    }

    /// Rows of a tile of A and of sums.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: compiled code does not use tiles, and there is no other `Configured` on this thread.
        unsafe {
            asm!("tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
