//! Every policy against NVIDIA's own code, run in fp32 on the same weights (`shared/golden`), through replayed traces.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::{Case, is_gated};
use gr00t_host::metrics::{Gate, compare};
use gr00t_model::{DtypePolicy, RunOptions};

fn verify(name: &str, policy: DtypePolicy) {
    let Some(case) = Case::open(name) else { return };
    let gate = Gate { min_pcc: policy.min_pcc(), max_abs: f64::INFINITY };
    let model = case.builder(policy).build().unwrap();
    let mut comparison = case.comparison();

    let observed = model.observe(&case.inputs, &RunOptions::new(), &mut comparison).unwrap();
    let replayed = model.predict(&case.inputs, &RunOptions::new()).unwrap();

    println!("{:?}", replayed.timings);
    assert_eq!(observed.action_pred, replayed.action_pred, "an observer changes the actions");
    assert!(comparison.unseen.is_empty(), "no stage for {:?}", comparison.unseen);
    for stage in comparison.stages.iter().filter(|stage| is_gated(&stage.name)) {
        assert!(stage.metrics.passes(&gate), "{}: {:?}", stage.name, stage.metrics);
    }
    assert!(compare(&replayed.action_pred, &case.action_pred()).passes(&gate));
}

#[test]
#[ignore = "reason: full size, minutes and 7 GiB"]
fn full_size_in_bf16() {
    verify("full", DtypePolicy::Bf16);
}

#[test]
#[ignore = "reason: full size, minutes and 6 GiB"]
fn full_size_in_mixed() {
    verify("full", DtypePolicy::Mixed);
}

#[test]
#[ignore = "reason: full size, minutes and 7 GiB"]
fn full_size_in_mixed_dit() {
    verify("full", DtypePolicy::MixedDit);
}

macro_rules! golden {
    ($($name:ident: $case:literal, $policy:ident;)*) => {$(
        #[test]
        fn $name() {
            verify($case, DtypePolicy::$policy);
        }
    )*};
}

golden! {
    tiny_one_view_in_bf16: "tiny/a", Bf16;
    tiny_one_view_in_mixed: "tiny/a", Mixed;
    tiny_one_view_in_mixed_dit: "tiny/a", MixedDit;
    tiny_two_views_in_bf16: "tiny/two_views", Bf16;
    tiny_two_views_in_mixed: "tiny/two_views", Mixed;
    tiny_two_views_in_mixed_dit: "tiny/two_views", MixedDit;
    mini_gr1_in_bf16: "mini/gr1", Bf16;
    mini_gr1_in_mixed: "mini/gr1", Mixed;
    mini_gr1_in_mixed_dit: "mini/gr1", MixedDit;
    mini_droid_three_views_in_bf16: "mini/droid_three_views", Bf16;
    mini_droid_three_views_in_mixed: "mini/droid_three_views", Mixed;
    mini_droid_three_views_in_mixed_dit: "mini/droid_three_views", MixedDit;
}
