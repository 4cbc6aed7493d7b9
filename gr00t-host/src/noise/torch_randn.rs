//! `torch.randn` on a seeded CPU generator, bit for bit.
//!
//! Mirrors what torch 2.5 does for a contiguous float32 tensor on an x86 CPU with AVX2
//! (`aten/src/ATen/native/cpu/DistributionTemplates.h`): from 16 elements on a vectorised Box–Muller over blocks of
//! 16, below that a scalar one in double precision.

use super::cephes;
use super::mt19937::Mt19937;

/// Elements of one Box–Muller block: eight radii, then eight angles.
const BLOCK: usize = 16;
/// Bits of a uniform float draw and of a uniform double draw.
const F32_BITS: u32 = 24;
const F64_BITS: u32 = 53;

/// The values of `torch.randn(elements, generator=torch.Generator().manual_seed(seed))` in float32, row-major for
/// any shape of that many elements. Only the low 32 bits of `seed` count, as in torch.
pub fn torch_randn(seed: u64, elements: usize) -> Vec<f32> {
    let mut generator = Mt19937::new(seed);
    if elements < BLOCK { scalar(&mut generator, elements) } else { blocks(&mut generator, elements) }
}

/// Uniform in [0, 1) with 24 bits.
fn uniform_f32(generator: &mut Mt19937) -> f32 {
    let bits = generator.next_u32() & ((1 << F32_BITS) - 1);
    bits as f32 / (1_u32 << F32_BITS) as f32
}

/// Uniform in [0, 1) with 53 bits.
fn uniform_f64(generator: &mut Mt19937) -> f64 {
    let bits = generator.next_u64() & ((1 << F64_BITS) - 1);
    bits as f64 / (1_u64 << F64_BITS) as f64
}

fn blocks(generator: &mut Mt19937, elements: usize) -> Vec<f32> {
    let mut values: Vec<f32> = (0..elements).map(|_| uniform_f32(generator)).collect();
    let whole = elements - elements % BLOCK;
    values[..whole].chunks_exact_mut(BLOCK).for_each(box_muller);
    if whole < elements {
        // the last block overlaps finished values and is drawn anew, all 16
        let last = &mut values[elements - BLOCK..];
        last.fill_with(|| uniform_f32(generator));
        box_muller(last);
    }
    values
}

/// Turns eight uniforms for the radius and eight for the angle into eight cosine and eight sine values.
fn box_muller(block: &mut [f32]) {
    let (left, right) = block.split_at_mut(BLOCK / 2);
    for (a, b) in left.iter_mut().zip(right) {
        let radius = (-2.0 * cephes::ln(1.0 - *a)).sqrt();
        let (sin, cos) = cephes::sin_cos(std::f32::consts::TAU * *b);
        (*a, *b) = (radius * cos, radius * sin);
    }
}

/// Pairs of normals in double precision: the cosine value first, the sine value kept for the next element.
fn scalar(generator: &mut Mt19937, elements: usize) -> Vec<f32> {
    let mut kept = None;
    let mut next = || {
        if let Some(value) = kept.take() {
            return value;
        }
        let angle = std::f64::consts::TAU * uniform_f64(generator);
        let radius = (-2.0 * (-uniform_f64(generator)).ln_1p()).sqrt();
        kept = Some((radius * angle.sin()) as f32);
        (radius * angle.cos()) as f32
    };
    (0..elements).map(|_| next()).collect()
}
