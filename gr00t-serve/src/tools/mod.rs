//! Tools that talk to a server, this one or another with the same routes.

mod bench;
mod client;
mod smoke;
mod summary;

pub use bench::{BenchOptions, bench};
pub use client::Client;
pub use smoke::{SmokeOptions, smoke};
pub use summary::{bench_in_words, smoke_in_words};
