//! Procedural weights: every element a pure function of seed, tensor name and index.
//!
//! They stand in for real weights in tests, demos and full-size checks; nothing is stored, any range of any tensor
//! is generated when it is read.

mod inputs;
mod stream;

use std::collections::HashMap;

use half::bf16;
use rayon::prelude::*;

pub use inputs::{gaussian_array, id_array, uniform_array};
pub use stream::{Stream, fnv1a64};

use super::plan::expected_tensors;
use super::source::checked_range;
use super::{StoredDtype, TensorInfo, TensorSource};
use crate::{Error, ModelConfig, Result};

/// Elements that one thread generates at a time.
const CHUNK: usize = 1 << 16;
/// Elements whose integers are drawn before any is scaled: the draw is bound by 64-bit multiplies, which want
/// scalar code, the scaling vectorises.
const BLOCK: usize = 256;

/// Half-width of a bias and of a norm's weight around 1.
const SMALL: f32 = 0.1;
/// Half-width of an embedding table.
const TABLE: f32 = 0.5;
/// Variance of a uniform draw in `[-s, s)` is `s² / 3`; linear layers get variance 1 over their inputs.
const UNIFORM_VARIANCE: f64 = 3.0;
/// Tables: scaled as embeddings although they look like linear layers.
const TABLES: [&str; 4] =
    ["embed_tokens.weight", "lm_head.weight", "position_embedding.weight", "future_tokens.weight"];

/// All weights of a configuration, generated on demand in bf16.
#[derive(Debug, Clone)]
pub struct Procedural {
    seed: u64,
    order: Vec<String>,
    tensors: HashMap<String, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    shape: Vec<usize>,
    generator: Generator,
}

/// How the elements of one tensor are made: `bf16(scale · u(i) + offset)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generator {
    /// Source of `u`.
    pub stream: Stream,
    /// Half-width of the range.
    pub scale: f32,
    /// Its centre.
    pub offset: f32,
}

impl Procedural {
    /// The weights of `config` under `seed`.
    pub fn new(config: &ModelConfig, seed: u64) -> Self {
        let expected = expected_tensors(config);
        let order = expected.iter().map(|t| t.name.clone()).collect();
        let tensors = expected
            .into_iter()
            .map(|t| {
                let generator = Generator::new(seed, &t.name, &t.shape);
                (t.name, Entry { shape: t.shape, generator })
            })
            .collect();
        Self { seed, order, tensors }
    }

    /// How tensor `name` is made.
    pub fn generator(&self, name: &str) -> Option<Generator> {
        self.tensors.get(name).map(|entry| entry.generator)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.tensors.get(name).ok_or_else(|| Error::tensor(name, format!("not in {}", self.describe())))
    }
}

impl Generator {
    /// The rule for a tensor of this name and shape; the first that fits counts.
    fn new(seed: u64, name: &str, shape: &[usize]) -> Self {
        let last = name.rsplit('.').next().unwrap_or(name);
        let (offset, scale) = if matches!(last, "bias" | "in_proj_bias" | "b") {
            (0.0, SMALL)
        } else if last == "probe" || TABLES.iter().any(|table| name.ends_with(table)) {
            (0.0, TABLE)
        } else if last == "weight" && shape.len() == 1 {
            (1.0, SMALL)
        } else {
            let inputs = match shape {
                [_, inputs, _] if last == "W" => *inputs as f64,
                [_, rest @ ..] => rest.iter().map(|&n| n as f64).product(),
                [] => 1.0,
            };
            (0.0, (UNIFORM_VARIANCE / inputs).sqrt() as f32)
        };
        Self { stream: Stream::new(seed, name), scale, offset }
    }

    /// The element made of a stream's `integer`: two f32 roundings, then one to bf16.
    #[inline]
    fn value(&self, integer: i32) -> bf16 {
        // Multiply and add round separately: a fused multiply-add would differ in the last bit. Adding a zero
        // offset changes nothing, because the product is never -0.
        round_finite(self.scale * Stream::to_unit(integer) + self.offset)
    }

    fn fill<T: Send>(&self, start: u64, out: &mut [T], convert: impl Fn(bf16) -> T + Sync) {
        let fill_chunk = |start: u64, chunk: &mut [T]| {
            let mut integers = [0; BLOCK];
            for (block, start) in chunk.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
                self.stream.integers(start, &mut integers);
                for (slot, &integer) in block.iter_mut().zip(&integers) {
                    *slot = convert(self.value(integer));
                }
            }
        };
        if out.len() <= CHUNK {
            fill_chunk(start, out);
        } else {
            out.par_chunks_mut(CHUNK)
                .enumerate()
                .for_each(|(i, chunk)| fill_chunk(start + (i * CHUNK) as u64, chunk));
        }
    }
}

impl TensorSource for Procedural {
    fn describe(&self) -> String {
        format!("synthetic weights, seed {}", self.seed)
    }

    fn names(&self) -> Vec<String> {
        self.order.clone()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        let entry = self.tensors.get(name)?;
        Some(TensorInfo { shape: entry.shape.clone(), dtype: StoredDtype::Bf16 })
    }

    fn read_f32(&self, name: &str, start: usize, out: &mut [f32]) -> Result<()> {
        let entry = self.entry(name)?;
        checked_range(name, &entry.shape, start, out.len())?;
        entry.generator.fill(start as u64, out, |value| f32::from_bits(u32::from(value.to_bits()) << 16));
        Ok(())
    }

    fn read_bf16(&self, name: &str, start: usize, out: &mut [bf16]) -> Result<()> {
        let entry = self.entry(name)?;
        checked_range(name, &entry.shape, start, out.len())?;
        entry.generator.fill(start as u64, out, |value| value);
        Ok(())
    }
}

/// Nearest bf16 of a finite number, ties to even, without the branch for NaN that keeps a loop scalar.
#[inline]
fn round_finite(value: f32) -> bf16 {
    let bits = value.to_bits();
    let ties_to_even = 0x7FFF + ((bits >> 16) & 1);
    bf16::from_bits(((bits + ties_to_even) >> 16) as u16)
}
