//! Products and attention of `tt-soft` and of other Rust libraries, on the same values and at the model's shapes.
//!
//! Every contestant of a product has several copies of its weight and takes them by turns, so that none multiplies what
//! the last call left in the cache. Each can say its result, which is held against f64 before anything is timed.

#![forbid(unsafe_code)]

mod attention;
mod product;
mod values;

pub use attention::{attention_in_f64, attentions};
pub use product::{product_in_f64, products};
pub use values::relative_rms;

use std::error::Error;

/// Whatever a library says that went wrong.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One library's way to compute a case.
pub struct Contestant {
    /// Library and data type of the weight, or of queries, keys and values.
    pub name: &'static str,
    /// Most relative rms error against f64 that its data types explain.
    pub bound: f64,
    /// How it is done.
    pub call: Box<dyn Call>,
}

impl Contestant {
    fn new(name: &'static str, bound: f64, call: impl Call + 'static) -> Self {
        Self { name, bound, call: Box::new(call) }
    }
}

/// What is timed.
pub trait Call {
    /// Computes the case once.
    fn run(&mut self) -> Result<()>;

    /// What the last run computed, row-major.
    fn result(&self) -> Result<Vec<f32>>;
}

/// Bounds of the relative rms error: float32 sums, a result rounded to bfloat16, operands of 8 bits with shared exponents.
mod bound {
    pub(crate) const F32: f64 = 1e-6;
    pub(crate) const BF16: f64 = 2e-3;
    pub(crate) const EIGHT_BITS: f64 = 1e-2;
}
