//! The table of inner loops, one instance per instruction set level.
//!
//! What is computed stands in `math`, `lanes` and `expand` (plain Rust, compiled once per level with that level's
//! features) and in `portable`, `avx2`, `avx512` (the matmul tile, by hand); `amx` has blocks of its own. Callers pick a table once, by [`Isa`].

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_expand;
pub(crate) mod expand;
pub(crate) mod lanes;
pub(crate) mod math;
mod portable;
pub(crate) mod quantize;

use crate::activation::Activation;
use crate::eltwise::{Binary, Unary};
use crate::isa::Isa;
use half::bf16;

/// Columns of a matmul panel: two AVX-512 registers, one row of a 32x32 tile.
pub(crate) const PANEL: usize = 32;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Asks for bytes that will be needed, to be in L2 by then.
#[inline]
pub(crate) fn ask_for(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// A block of a matmul: `c[r][n] (+)= sum over w of a[w * lda + r] * b[w * PANEL + n]`, n < PANEL.
///
/// A word is an f32, or two bf16 (k even in the low half) whose products are both added.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Rows of C: 1 up to the kernel's `max_rows`.
    pub rows: usize,
    /// Words along K.
    pub words: usize,
    pub a: *const u32,
    /// Words from one k to the next in `a`.
    pub lda: usize,
    pub b: *const u32,
    pub c: *mut f32,
    /// Floats from one row of C to the next.
    pub ldc: usize,
    /// Add to C rather than overwrite it.
    pub accumulate: bool,
}

/// A matmul tile kernel and the most rows that it takes.
#[derive(Clone, Copy)]
pub(crate) struct TileKernel {
    pub max_rows: usize,
    /// # Safety
    /// `1 <= rows <= max_rows`; `a`, `b` and `c` reach every element that the formula of [`Tile`] names, `c` exclusively;
    /// the CPU has the level of the table that the kernel came from.
    pub run: unsafe fn(Tile),
}

/// Weight and bias, and the constant, of a norm over one row.
#[derive(Clone, Copy)]
pub(crate) struct NormRow<'a> {
    pub weight: Option<&'a [f32]>,
    pub bias: Option<&'a [f32]>,
    pub eps: f32,
}

/// Inner loops at one level. Slices that belong together have equal lengths (callers check).
pub(crate) struct Kernels {
    pub isa: Isa,
    /// Words are f32.
    pub tile_f32: TileKernel,
    /// Words are pairs of bf16, where the level has such a kernel and it is the faster one.
    pub tile_bf16: Option<TileKernel>,
    pub widen: fn(&[bf16], &mut [f32]),
    pub narrow: fn(&[f32], &mut [bf16]),
    pub activation: fn(Activation, &mut [f32]),
    pub unary: fn(Unary, &mut [f32]),
    /// `a = a op b`.
    pub binary: fn(Binary, &mut [f32], &[f32]),
    /// Softmax of a row in place; all `-inf` gives zeros.
    pub softmax: fn(&mut [f32]),
    /// Exponentials, of a [T][PANEL] block times a factor less the column's maximum, and their sums down the columns.
    pub exp_columns: fn(&mut [f32], f32, &mut [f32; PANEL]),
    pub layer_norm: fn(&mut [f32], NormRow<'_>),
    pub rms_norm: fn(&mut [f32], NormRow<'_>),
    /// Half-split rotation: (x1, x2, cos, sin of the first half, cos, sin of the second).
    pub rotate: fn(&mut [f32], &mut [f32], [&[f32]; 4]),
    /// Rows of a panel to block float; see `quantize`.
    pub quantize_bfp8: fn(&[f32], &mut [u8], &mut [u8]),
    pub quantize_bfp4: fn(&[f32], &mut [u8], &mut [u8]),
    /// Packed weights to words; see `expand`.
    pub expand: expand::Expand,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernels").field("isa", &self.isa).finish_non_exhaustive()
    }
}

impl Kernels {
    /// The table of a level. Callers have checked that the CPU has it ([`crate::Engine::new`]).
    pub(crate) fn of(isa: Isa) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        match isa {
            Isa::Amx => return &AMX,
            Isa::Avx512 if avx512::bf16_dot_is_fast() => return &AVX512_BF16,
            _ => {}
        }
        Self::with_fp32_products(isa)
    }

    /// The table of a level without the bf16 dot product.
    pub(crate) fn with_fp32_products(isa: Isa) -> &'static Self {
        debug_assert!(isa.is_available());
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &AVX2,
            _ => &PORTABLE,
        }
    }
}

/// One plain Rust loop, compiled with some features, behind a safe function.
macro_rules! instance {
    ([$($feature:meta)?] $name:ident => $path:path, ($($arg:ident: $type:ty),*)) => {
        pub(super) fn $name($($arg: $type),*) {
            $(#[$feature])?
            fn inner($($arg: $type),*) {
                $path($($arg),*);
            }
            // SAFETY: a table is handed out only where the CPU has its level (`Kernels::of`), so the features that
            // `inner` is compiled for are there.
            #[allow(unused_unsafe)]
            unsafe {
                inner($($arg),*);
            }
        }
    };
}

/// Instances of the plain Rust loops at one level.
macro_rules! level {
    ($module:ident, fused: $fused:literal, $features:tt) => {
        mod $module {
            use super::{Activation, Binary, NormRow, PANEL, Unary, bf16, lanes, quantize};

            instance!($features widen => lanes::widen, (x: &[bf16], out: &mut [f32]));
            instance!($features narrow => lanes::narrow, (x: &[f32], out: &mut [bf16]));
            instance!($features activation => lanes::activation::<$fused>, (f: Activation, x: &mut [f32]));
            instance!($features unary => lanes::unary::<$fused>, (f: Unary, x: &mut [f32]));
            instance!($features binary => lanes::binary, (f: Binary, a: &mut [f32], b: &[f32]));
            instance!($features softmax => lanes::softmax::<$fused>, (x: &mut [f32]));
            instance!($features exp_columns => lanes::exp_columns::<$fused>,
                (x: &mut [f32], scale: f32, sums: &mut [f32; PANEL]));
            instance!($features layer_norm => lanes::layer_norm::<$fused>, (x: &mut [f32], norm: NormRow<'_>));
            instance!($features rms_norm => lanes::rms_norm::<$fused>, (x: &mut [f32], norm: NormRow<'_>));
            instance!($features bfp8 => quantize::bfp8, (rows: &[f32], pairs: &mut [u8], exponents: &mut [u8]));
            instance!($features bfp4 => quantize::bfp4, (rows: &[f32], pairs: &mut [u8], exponents: &mut [u8]));
            instance!($features rotate => lanes::rotate, (a: &mut [f32], b: &mut [f32], tables: [&[f32]; 4]));
        }
    };
}

/// Instances of the plain Rust expansions at one level.
macro_rules! expansions {
    ($module:ident, $features:tt) => {
        mod $module {
            use super::expand;

            instance!($features bf16_f32 => expand::bf16_to_f32, (x: &[u32], out: &mut [f32]));
            instance!($features bfp8_f32 => expand::bfp8_to_f32, (x: &[u16], e: &[[u8; 2]], out: &mut [f32]));
            instance!($features bfp4_f32 => expand::bfp4_to_f32, (x: &[u8], e: &[[u8; 2]], out: &mut [f32]));
            instance!($features bfp8_bf16 => expand::bfp8_to_bf16, (x: &[u16], e: &[[u8; 2]], out: &mut [u32]));
            instance!($features bfp4_bf16 => expand::bfp4_to_bf16, (x: &[u8], e: &[[u8; 2]], out: &mut [u32]));
            pub(super) const EXPAND: expand::Expand = expand::Expand {
                bf16_to_f32: bf16_f32,
                bfp8_to_f32: bfp8_f32,
                bfp4_to_f32: bfp4_f32,
                bfp8_to_bf16: bfp8_bf16,
                bfp4_to_bf16: bfp4_bf16,
            };
        }
    };
}

macro_rules! table {
    ($module:ident, $isa:expr, $tile_f32:expr, $tile_bf16:expr, $expand:expr) => {
        Kernels {
            isa: $isa,
            tile_f32: $tile_f32,
            tile_bf16: $tile_bf16,
            widen: $module::widen,
            narrow: $module::narrow,
            activation: $module::activation,
            unary: $module::unary,
            binary: $module::binary,
            softmax: $module::softmax,
            exp_columns: $module::exp_columns,
            layer_norm: $module::layer_norm,
            rms_norm: $module::rms_norm,
            rotate: $module::rotate,
            quantize_bfp8: $module::bfp8,
            quantize_bfp4: $module::bfp4,
            expand: $expand,
        }
    };
}

level!(portable_lanes, fused: false, []);
expansions!(portable_expand, []);
static PORTABLE: Kernels =
    table!(portable_lanes, Isa::Portable, portable::TILE, None, portable_expand::EXPAND);

#[cfg(target_arch = "x86_64")]
level!(avx2_lanes, fused: true, [target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
expansions!(avx2_expand, [target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
static AVX2: Kernels = table!(avx2_lanes, Isa::Avx2, avx2::TILE, None, avx2_expand::EXPAND);

#[cfg(target_arch = "x86_64")]
level!(avx512_lanes, fused: true, [target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
static AVX512: Kernels = table!(avx512_lanes, Isa::Avx512, avx512::TILE, None, avx512_expand::EXPAND);
#[cfg(target_arch = "x86_64")]
static AVX512_BF16: Kernels =
    table!(avx512_lanes, Isa::Avx512, avx512::TILE, Some(avx512::TILE_BF16), avx512_expand::EXPAND);

#[cfg(target_arch = "x86_64")]
static AMX: Kernels = table!(avx512_lanes, Isa::Amx, avx512::TILE, None, avx512_expand::EXPAND);

/// The table of AMX, for tests that emulate it.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) static AMX_EMULATED: &Kernels = &AMX;
