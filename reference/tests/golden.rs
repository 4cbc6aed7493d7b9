//! The reference against NVIDIA's own code, run in fp32 on the same weights (`shared/golden`).

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::Case;
use reference::Reference;

/// `action_pred`'s largest difference.
const MAX_ABS: f64 = 1e-4;
/// Every stage's correlation.
const MIN_PCC: f64 = 0.9999999;

fn verify(name: &str) {
    let Some(case) = Case::open(name) else { return };
    let mut comparison = case.comparison();
    let reference = Reference::new(&case.config, case.weights.clone());

    reference.predict(&case.inputs, &mut comparison).unwrap();

    assert!(comparison.unseen.is_empty(), "no stage for {:?}", comparison.unseen);
    for stage in &comparison.stages {
        assert!(stage.pcc >= MIN_PCC, "{}: PCC {}", stage.name, stage.pcc);
    }
    let action_pred = comparison.stages.last().unwrap();
    assert_eq!(action_pred.name, "action_pred");
    assert!(action_pred.max_abs <= MAX_ABS, "action_pred: max abs {}", action_pred.max_abs);
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
#[ignore = "full size: half a minute on two free cores, 2 GiB"]
fn full_size_equals_nvidia() {
    verify("full");
}
