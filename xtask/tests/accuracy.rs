//! `cargo xtask accuracy` as a person types it, on the mini model.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Real robot observations, beside the checkout on machines that have them.
const RECORDED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/gr1_pick/ep0_step0/observation.json");

fn accuracy(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.env("GR00T_TT_CACHE", "off").arg("accuracy").args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn measured(dir: &Path, arguments: &[&str]) -> (Value, String) {
    let json = dir.join("accuracy.json");
    let mut all = vec!["--reps", "1", "--json", json.to_str().unwrap()];
    all.extend(arguments);
    let output = accuracy(&all);
    assert!(output.status.success(), "{}", text(&output));
    (serde_json::from_slice(&fs::read(json).unwrap()).unwrap(), text(&output))
}

/// The largest `figure` of all entries of `list`.
fn largest(policy: &Value, list: &str, figure: &str) -> f64 {
    let entries = policy[list].as_array().unwrap();
    entries.iter().map(|entry| entry[figure].as_f64().unwrap()).fold(0.0, f64::max)
}

#[test]
fn narrower_weights_are_smaller_and_less_exact() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("folder/accuracy.png");
    let (report, text) = measured(dir.path(), &["--observations", "2", "--plot", plot.to_str().unwrap()]);
    assert_eq!(report["observations"], serde_json::json!(["demo", "variation 1"]));
    let policies = report["policies"].as_array().unwrap();
    assert_eq!(
        policies.iter().map(|p| p["policy"].as_str().unwrap()).collect::<Vec<_>>(),
        ["bf16", "mixed_dit", "mixed"]
    );
    let bytes = |policy: &Value| {
        policy["parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    for pair in policies.windows(2) {
        assert!(bytes(&pair[0]) > bytes(&pair[1]));
        assert!(largest(&pair[0], "groups", "rms") < largest(&pair[1], "groups", "rms"));
        assert_eq!(pair[0]["predict_ms"].as_array().unwrap().len(), 2);
    }
    // bf16 has eight bits of mantissa, so that no result is exact, and none is far off.
    let error = largest(&policies[0], "stages", "rel_rms");
    assert!((1e-4..2e-2).contains(&error), "{error}");
    for shown in ["dit_out, worst step", "left_arm [7]", "bfloat8_b"] {
        assert!(text.contains(shown), "no {shown:?} in\n{text}");
    }
    assert!(image::open(plot).unwrap().width() > 1000);
}

#[test]
fn one_policy_can_be_asked_for_and_every_stage_be_listed() {
    let dir = tempfile::tempdir().unwrap();
    let (report, text) =
        measured(dir.path(), &["--observations", "1", "--policies", "mixed", "--steps", "2", "--all"]);
    assert_eq!(report["policies"].as_array().unwrap().len(), 1);
    assert!(text.contains("step1.dit_out") && !text.contains("step2."), "{text}");
}

#[test]
fn recorded_observations_are_read_with_their_own_statistics() {
    if !Path::new(RECORDED).exists() {
        println!("skipped: {RECORDED} is absent");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (report, _) = measured(dir.path(), &["--policies", "bf16", "--observation", RECORDED]);
    let left_hand = &report["policies"][0]["groups"][2];
    assert_eq!(left_hand["key"], "left_hand");
    // The hand never moved in that dataset, so that any output means the same position.
    assert_eq!((left_hand["range"].as_f64(), left_hand["max_abs"].as_f64()), (Some(0.0), Some(0.0)));
}

#[test]
fn what_cannot_be_measured_is_one_line() {
    for (arguments, wanted) in [
        (&["--policies", "bf17"][..], "dtype policy: got \"bf17\""),
        (&["--observations", "0"][..], "invalid value '0'"),
        (&["--observation", "no/such.json"][..], "no/such.json"),
        (&["--plot", "/dev/null/x.png"][..], "/dev/null"),
    ] {
        let output = accuracy(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?} passed");
        assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
        assert!(errors.contains(wanted), "no {wanted:?} in {errors}");
    }
}
