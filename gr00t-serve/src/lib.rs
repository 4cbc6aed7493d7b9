//! The policy server on `gr00t-model`.
