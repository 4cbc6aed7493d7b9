//! The policy server on `gr00t-model`.

#![forbid(unsafe_code)]
