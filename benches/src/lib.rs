//! What is measured: one list of kernel cases, which the criterion benches and `cargo xtask bench` share.

#![forbid(unsafe_code)]

mod cases;
mod prepared;

pub use cases::{Case, Kind, SEQUENCE, cases};
pub use prepared::Prepared;
