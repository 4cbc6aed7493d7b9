//! The initial noise of the flow: torch's seeded normal draws, values of the caller's, or a fresh seed.

mod cephes;
mod mt19937;
mod torch_randn;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

pub use torch_randn::torch_randn;

use crate::{Error, Result};

/// Largest noise array that is drawn, in elements.
const MAX_ELEMENTS: usize = 1 << 20;

/// Where the initial noise of one prediction comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// What [`torch_randn`] draws for the seed: the same noise, so the same actions, every time.
    Seed(u64),
    /// Values `[action_horizon, action_dim]`, row-major.
    Explicit(Vec<f32>),
    /// A seed that nobody knows beforehand ([`fresh_seed`]), as upstream's unseeded policy.
    Fresh,
}

impl Default for Noise {
    /// Seed 0.
    fn default() -> Self {
        Self::Seed(0)
    }
}

impl Noise {
    /// The noise `[horizon, dim]`, row-major.
    ///
    /// # Errors
    /// If explicit values have another number of elements or are not all finite, or if the shape is empty or beyond
    /// a million elements.
    pub fn resolve(&self, horizon: usize, dim: usize) -> Result<Vec<f32>> {
        let Some(elements @ 1..=MAX_ELEMENTS) = horizon.checked_mul(dim) else {
            return Err(Error::Noise(format!(
                "shape [{horizon}, {dim}], wanted 1 to {MAX_ELEMENTS} elements"
            )));
        };
        match self {
            Self::Seed(seed) => Ok(torch_randn(*seed, elements)),
            Self::Fresh => Ok(torch_randn(fresh_seed(), elements)),
            Self::Explicit(values) => {
                let got = values.len();
                if got != elements {
                    return Err(Error::Noise(format!(
                        "got {got} elements, wanted [{horizon}, {dim}] = {elements}"
                    )));
                }
                match values.iter().position(|value| !value.is_finite()) {
                    Some(at) => Err(Error::Noise(format!("element {at} is not finite"))),
                    None => Ok(values.clone()),
                }
            }
        }
    }
}

/// A seed from the operating system's randomness, another one each call. It fits 32 bits, all that torch's generator
/// uses, so that it can be reported and used again. Not for secrets.
pub fn fresh_seed() -> u64 {
    // the hasher's keys are the standard library's only door to the system's randomness
    RandomState::new().build_hasher().finish() & u64::from(u32::MAX)
}
