//! Shared cases of the criterion benches.

#![forbid(unsafe_code)]
