//! The reference against NVIDIA's own code, run in fp32 on the same weights (`shared/golden`).

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::Case;
use gr00t_host::metrics::Gate;
use reference::Reference;

/// Every stage.
const STAGE: Gate = Gate { min_pcc: 0.9999999, max_abs: f64::INFINITY };
/// The result.
const ACTION_PRED: Gate = Gate { min_pcc: 0.9999999, max_abs: 1e-4 };

fn verify(name: &str) {
    let Some(case) = Case::open(name) else { return };
    let mut comparison = case.comparison();
    let reference = Reference::new(&case.config, case.weights.clone());

    reference.predict(&case.inputs, &mut comparison).unwrap();

    assert!(comparison.unseen.is_empty(), "no stage for {:?}", comparison.unseen);
    for stage in &comparison.stages {
        assert!(stage.metrics.passes(&STAGE), "{}: {:?}", stage.name, stage.metrics);
    }
    let action_pred = comparison.stages.last().unwrap();
    assert_eq!(action_pred.name, "action_pred");
    assert!(action_pred.metrics.passes(&ACTION_PRED), "action_pred: {:?}", action_pred.metrics);
}

#[test]
fn tiny_one_view_equals_nvidia() {
    verify("tiny/a");
}

#[test]
fn tiny_two_views_equal_nvidia() {
    verify("tiny/two_views");
}

#[test]
fn mini_gr1_equals_nvidia() {
    verify("mini/gr1");
}

#[test]
fn mini_droid_three_views_equal_nvidia() {
    verify("mini/droid_three_views");
}

#[test]
#[ignore = "reason: full size, half a minute on two free cores, 2 GiB"]
fn full_size_equals_nvidia() {
    verify("full");
}
