//! The tiny goldens at the AMX level, which is emulated where the CPU has AVX-512 only. A test binary of its own, because
//! the emulation is for the whole process.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::{Case, is_gated};
use gr00t_host::metrics::{Gate, compare};
use gr00t_model::{DtypePolicy, RunOptions};
use tt_ops::Soft;
use tt_ops::soft::Isa;
use tt_soft::amx_emulation::{self, Counts};

/// The actions are the same with one thread and with two, and every stage passes the policy's gate.
fn verify(name: &str, policy: DtypePolicy) {
    let Some(case) = Case::open(name) else { return };
    if !amx_emulation::enable() {
        println!("skipped: this CPU has neither AMX nor AVX-512");
        return;
    }
    let gate = Gate { min_pcc: policy.min_pcc(), max_abs: f64::INFINITY };
    let run = |threads| {
        let device = Soft::builder().isa(Isa::Amx).threads(threads).open().unwrap();
        let model = case.builder_on(device, policy).build().unwrap();
        let mut comparison = case.comparison();
        model.observe(&case.inputs, &RunOptions::new(), &mut comparison).unwrap();
        for stage in comparison.stages.iter().filter(|stage| is_gated(&stage.name)) {
            assert!(stage.metrics.passes(&gate), "{}: {:?}", stage.name, stage.metrics);
        }
        model.predict(&case.inputs, &RunOptions::new()).unwrap().action_pred
    };
    let mut actions = Vec::new();
    let done = Counts::of(|| actions = run(1));
    assert!(compare(&actions, &case.action_pred()).passes(&gate));
    assert_eq!(actions, run(2), "threads change the actions");
    if amx_emulation::is_enabled() {
        println!("{name}: {done:?}");
        assert!(done.products > 0, "nothing was multiplied with AMX");
        assert_eq!(done.configurations, done.releases);
    }
}

#[test]
fn tiny_one_view_in_bf16() {
    verify("tiny/a", DtypePolicy::Bf16);
}

#[test]
fn tiny_one_view_in_mixed() {
    verify("tiny/a", DtypePolicy::Mixed);
}

#[test]
fn tiny_two_views_in_mixed_dit() {
    verify("tiny/two_views", DtypePolicy::MixedDit);
}
