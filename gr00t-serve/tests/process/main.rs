//! The program itself: boot log, cache, refusals, ends, rights.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod abuse;
mod boot_log;
mod cache;
mod ends;
#[path = "../wire_protocols/peer.rs"]
#[allow(dead_code, reason = "the wire tests use the rest")]
mod peer;
mod refusals;
mod request_log;
mod rights;
mod server;
