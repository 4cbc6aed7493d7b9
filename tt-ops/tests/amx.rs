//! The op suite at the AMX level, which is emulated where the CPU has AVX-512 only. A test binary of its own, because the
//! emulation is for the whole process.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::Soft;
use tt_ops::soft::Isa;
use tt_ops::suite::{self, CaseResult, Mode};
use tt_soft::amx_emulation;

fn assert_passes(threads: usize, checked: bool, mode: Mode) {
    if !amx_emulation::enable() {
        println!("skipped: this CPU has neither AMX nor AVX-512");
        return;
    }
    let device = Soft::builder().isa(Isa::Amx).threads(threads).checked(checked).open().unwrap();
    let results = suite::run(&device, mode);
    let failures: Vec<&CaseResult> = results.iter().filter(|r| !r.passed()).collect();
    assert!(failures.is_empty(), "{mode:?}: {failures:#?}");
    assert!(results.len() > 150, "only {} cases ran", results.len());
}

#[test]
fn eager() {
    assert_passes(2, false, Mode::Eager);
}

#[test]
fn traced_in_checked_mode() {
    assert_passes(1, true, Mode::Traced);
}
