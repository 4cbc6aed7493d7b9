//! `cargo xtask`: build, test, verify, predict, demo, inspect, synth.

fn main() {}
