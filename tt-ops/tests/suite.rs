//! The op suite on the software device: every instruction set level, 1 to 3 threads, eager, traced and checked.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::soft::Isa;
use tt_ops::suite::{self, CaseResult, Mode};
use tt_ops::{Device, Soft};

fn assert_passes(device: &Soft, mode: Mode) {
    let results = suite::run(device, mode);
    let failures: Vec<&CaseResult> = results.iter().filter(|r| !r.passed()).collect();
    assert!(failures.is_empty(), "{}, {mode:?}: {failures:#?}", device.describe());
    assert!(results.len() > 150, "only {} cases ran", results.len());
}

fn device(isa: Isa, threads: usize, checked: bool) -> Soft {
    Soft::builder().isa(isa).threads(threads).checked(checked).open().unwrap()
}

#[test]
fn eager_on_every_instruction_set() {
    for isa in Isa::available() {
        assert_passes(&device(isa, 2, false), Mode::Eager);
    }
}

#[test]
fn traced_on_every_instruction_set() {
    for isa in Isa::available() {
        assert_passes(&device(isa, 1, false), Mode::Traced);
    }
}

#[test]
fn eager_and_traced_with_three_threads() {
    assert_passes(&device(Isa::detect(), 3, false), Mode::Eager);
    assert_passes(&device(Isa::detect(), 3, false), Mode::Traced);
}

#[test]
fn eager_in_checked_mode() {
    for isa in Isa::available() {
        assert_passes(&device(isa, 2, true), Mode::Eager);
    }
}

#[test]
fn traced_in_checked_mode() {
    for isa in Isa::available() {
        assert_passes(&device(isa, 2, true), Mode::Traced);
    }
}
