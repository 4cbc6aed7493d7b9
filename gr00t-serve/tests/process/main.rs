//! The program itself: boot log, cache, refusals, ends, rights.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod boot_log;
mod cache;
mod ends;
mod refusals;
mod rights;
mod server;
