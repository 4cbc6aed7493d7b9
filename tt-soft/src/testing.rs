//! What the kernel tests share: engines of every level, reproducible values, comparison with f64.

use crate::{Engine, Isa};
use half::bf16;

/// Runs a case with 1, 2 and 3 threads at every level this CPU has, without a bf16 dot product where it has one, and
/// with AMX emulated where there is AVX-512 only; the results must be the same bytes for every number of threads.
pub(crate) fn at_every_level<T: PartialEq + std::fmt::Debug>(
    case: impl Fn(&Engine) -> T,
) -> Vec<(String, T)> {
    type Change = fn(Engine) -> Engine;
    let mut levels: Vec<(String, Isa, Change)> =
        Isa::available().into_iter().map(|isa| (isa.to_string(), isa, (|e| e) as Change)).collect();
    if Isa::Avx512.is_available() {
        levels.push(("avx512 in fp32".to_owned(), Isa::Avx512, Engine::with_fp32_products));
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if needs_amx_emulation() {
        levels.push(("amx, emulated".to_owned(), Isa::Avx512, |e| {
            e.with_kernels(crate::kernels::AMX_EMULATED)
        }));
    }
    levels
        .into_iter()
        .map(|(name, isa, change)| {
            let [one, two, three] =
                [1, 2, 3].map(|threads| case(&change(Engine::new(isa, threads).unwrap())));
            assert!(one == two && two == three, "{name}: results depend on the number of threads");
            (name, one)
        })
        .collect()
}

/// Is AMX emulated on this CPU? If so it is ready. Not where the CPU has AMX, nor where it lacks AVX-512.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn needs_amx_emulation() -> bool {
    let needed = Isa::Avx512.is_available() && !Isa::Amx.is_available();
    if needed {
        crate::amx_emulation::install();
    }
    needed
}

/// Values of roughly unit size, the same for a seed everywhere.
pub(crate) fn values(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    // The sum of three uniform numbers is bell shaped; its variance is 1/4.
    (0..len).map(|_| 2.0 * (next() + next() + next())).collect()
}

pub(crate) fn to_bf16(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|v| bf16::from_f32(*v)).collect()
}

/// Largest |got - want| over the largest |want|.
pub(crate) fn relative_error(got: impl IntoIterator<Item = f32>, want: &[f64]) -> f64 {
    let scale = want.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
    let mut count = 0;
    let worst = got.into_iter().zip(want).fold(0f64, |worst, (g, w)| {
        count += 1;
        let difference = (f64::from(g) - w).abs();
        if difference.is_nan() { f64::INFINITY } else { worst.max(difference) }
    });
    assert_eq!(count, want.len());
    worst / scale
}
