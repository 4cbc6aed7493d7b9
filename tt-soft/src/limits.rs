//! What the CPU can do at most: multiply-adds from registers, reading of memory. Kernels are judged against it.

use std::hint::black_box;

use crate::Engine;
use crate::engine::share;
use crate::error::Result;
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::kernels::amx::peak::FLOPS as FLOPS_PER_TILE_PRODUCT;
use crate::memory::AlignedBuf;

/// Independent sums: enough to hide the latency of a multiply-add.
const CHAINS: usize = 12;
#[cfg(not(target_arch = "x86_64"))]
const FLOPS_PER_TILE_PRODUCT: usize = 0;

/// How bf16 is multiplied on an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// AVX2 or less.
    Narrow,
    /// AVX-512.
    Wide,
    /// `vdpbf16ps`.
    Pairs,
    /// AMX.
    Tiles,
}

impl Kind {
    fn of(engine: &Engine) -> Self {
        // the table, not the level: an engine may be told not to multiply bf16
        let kernels = engine.kernels();
        match kernels.isa {
            Isa::Amx => Self::Tiles,
            Isa::Avx512 if kernels.tile_bf16.is_some() => Self::Pairs,
            Isa::Avx512 => Self::Wide,
            _ => Self::Narrow,
        }
    }
}

/// Floating-point operations that one step of [`multiply_add`] does on each thread.
#[must_use]
pub fn flops_per_step(engine: &Engine) -> usize {
    match Kind::of(engine) {
        Kind::Narrow => CHAINS * 8 * 2,
        Kind::Wide => CHAINS * 16 * 2,
        Kind::Pairs => CHAINS * 32 * 2,
        Kind::Tiles => FLOPS_PER_TILE_PRODUCT,
    }
}

/// The instruction that [`multiply_add`] measures on this engine: `fma`, `vdpbf16ps` or `tdpbf16ps`.
#[must_use]
pub fn multiply_add_name(engine: &Engine) -> &'static str {
    match Kind::of(engine) {
        Kind::Narrow | Kind::Wide => "fma",
        Kind::Pairs => "vdpbf16ps",
        Kind::Tiles => "tdpbf16ps",
    }
}

/// `steps` rounds of the widest multiply-add that `linear` uses for weights that are not float32, on registers, on every
/// thread. The portable level is measured by AVX2 where the CPU has it.
///
/// # Errors
/// If a thread panics.
pub fn multiply_add(engine: &Engine, steps: usize) -> Result<()> {
    let kind = Kind::of(engine);
    engine.team().run(&|_, _| {
        black_box(run(kind, steps));
    })
}

/// Reads `memory` once, a part on each thread; returns a sum of it.
///
/// # Errors
/// If a thread panics.
pub fn read(engine: &Engine, memory: &AlignedBuf) -> Result<u64> {
    let words = memory.as_slice::<u64>();
    let total = std::sync::atomic::AtomicU64::new(0);
    engine.team().run(&|member, members| {
        let part = words.get(share(words.len(), member, members)).unwrap_or_default();
        // one sum per lane, so that no add waits for another
        let mut sums = [0u64; 32];
        for chunk in part.chunks_exact(sums.len()) {
            for (sum, word) in sums.iter_mut().zip(chunk) {
                *sum = sum.wrapping_add(*word);
            }
        }
        let sum = sums.into_iter().fold(0, u64::wrapping_add);
        total.fetch_add(sum, std::sync::atomic::Ordering::Relaxed);
    })?;
    Ok(black_box(total.into_inner()))
}

#[cfg(target_arch = "x86_64")]
fn run(kind: Kind, steps: usize) -> f32 {
    use crate::kernels::amx::{Configured, SIDE, peak};
    use std::arch::x86_64::{
        _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_castps_si512, _mm512_cvtss_f32,
        _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };
    #[target_feature(enable = "avx2,fma")]
    fn narrow(steps: usize) -> f32 {
        let (x, y) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(0.25)));
        let mut sums = [x; CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(x, y, *sum);
            }
        }
        sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum()
    }
    #[target_feature(enable = "avx512f")]
    fn wide(steps: usize) -> f32 {
        let (x, y) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(0.25)));
        let mut sums = [x; CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
        }
        sums.into_iter().map(|sum| _mm512_cvtss_f32(sum)).sum()
    }
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn pairs(steps: usize) -> f32 {
        let x = _mm512_set1_ps(black_box(0.5));
        // SAFETY: both are 64 bytes of plain data.
        let pair = unsafe {
            std::mem::transmute::<std::arch::x86_64::__m512i, std::arch::x86_64::__m512bh>(
                _mm512_castps_si512(x),
            )
        };
        let mut sums = [x; CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm512_dpbf16_ps(*sum, pair, pair);
            }
        }
        sums.into_iter().map(|sum| _mm512_cvtss_f32(sum)).sum()
    }
    // SAFETY: the engine has checked that the CPU has the level, the table that it has the dot product; AVX2 is
    // checked here. Nothing else configures tiles while they are here.
    unsafe {
        match kind {
            Kind::Tiles => peak::products(&Configured::new(SIDE), steps),
            Kind::Pairs => pairs(steps),
            Kind::Wide => wide(steps),
            Kind::Narrow if Isa::Avx2.is_available() => narrow(steps),
            Kind::Narrow => 0.0,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_: Kind, _: usize) -> f32 {
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_every_level;

    #[test]
    fn all_of_the_memory_is_read() {
        for threads in [1, 3] {
            let engine = Engine::new(Isa::Portable, threads).unwrap();
            let mut memory = AlignedBuf::zeroed(8 * 32 * 30);
            memory.as_mut_slice::<u64>().fill(2);
            assert_eq!(read(&engine, &memory).unwrap(), 2 * 32 * 30);
        }
    }

    #[test]
    fn an_engine_with_fp32_products_is_judged_by_fp32_multiply_adds() {
        for isa in Isa::available() {
            let engine = Engine::new(isa, 1).unwrap().with_fp32_products();
            assert_eq!(multiply_add_name(&engine), "fma", "{isa}");
        }
    }

    #[test]
    fn every_level_has_a_multiply_add() {
        at_every_level(|engine| {
            multiply_add(engine, 3).unwrap();
            assert!(flops_per_step(engine) > 0);
        });
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn a_step_with_amx_is_one_product_of_tiles() {
        use crate::amx_emulation::Counts;
        if !crate::testing::needs_amx_emulation() {
            println!("skipped: this CPU has AMX, or no AVX-512");
            return;
        }
        let engine = Engine::new(Isa::Avx512, 1).unwrap().with_kernels(crate::kernels::AMX_EMULATED);
        assert_eq!(multiply_add_name(&engine), "tdpbf16ps");
        assert_eq!(flops_per_step(&engine), 2 * 16 * 16 * 32);
        for steps in [0, 3, 4, 9] {
            let done = Counts::of(|| multiply_add(&engine, steps).unwrap());
            assert_eq!((done.products, done.loads), (steps as u64, 2));
            assert_eq!(run(Kind::of(&engine), steps), 8.0 * steps as f32);
        }
    }
}
