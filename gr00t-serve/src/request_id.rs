//! What ties the log lines of one request together, whichever protocol it came by.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{Span, info_span};

/// A start that differs between processes, and a number that counts up.
pub(crate) fn new() -> String {
    static START: OnceLock<u32> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let start = START.get_or_init(|| RandomState::new().hash_one(()) as u32);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{start:08x}-{number}")
}

/// What the log lines of the request `id` are in.
pub(crate) fn span(id: &str) -> Span {
    info_span!("request", id)
}
