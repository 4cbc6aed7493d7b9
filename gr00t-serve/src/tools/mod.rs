//! Tools that talk to a server, this one or another with the same routes.

mod bench;
mod client;
mod smoke;

pub use bench::{BenchOptions, bench};
pub use smoke::{SmokeOptions, smoke};
