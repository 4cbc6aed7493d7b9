//! Shared cases of the criterion benches.
