//! `demo`, `predict`, `synth` and `inspect` as a person types them, on the observation that ships with the project.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const OBSERVATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo/observation.json");

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs `predict` with more `arguments` and returns its JSON.
fn predicted(dir: &Path, arguments: &[&str]) -> Value {
    let json = dir.join("result.json");
    let mut all = vec!["predict", "--observation", OBSERVATION, "--json", json.to_str().unwrap()];
    all.extend(arguments);
    let output = xtask(&all);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

#[test]
fn the_demo_shows_every_joint_group_and_draws_them() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("folder/demo.png");
    let output = xtask(&["demo", "--once", "--plot", plot.to_str().unwrap()]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    for group in ["left_arm [16, 7]", "right_arm [16, 7]", "left_hand [16, 6]", "right_hand [16, 6]"] {
        assert!(text.contains(group), "no {group} in\n{text}");
    }
    assert!(image::open(plot).unwrap().width() > 1000);
}

#[test]
fn the_seed_decides_the_actions() {
    let dir = tempfile::tempdir().unwrap();
    let first = predicted(dir.path(), &[]);
    assert_eq!(first["actions"], predicted(dir.path(), &["--seed", "0"])["actions"]);
    assert_ne!(first["actions"], predicted(dir.path(), &["--seed", "1"])["actions"]);
    assert_ne!(first["actions"], predicted(dir.path(), &["--weights", "synthetic:1"])["actions"]);
    assert_eq!(first["actions"]["left_arm"].as_array().unwrap().len(), 16);
}

#[test]
fn explicit_noise_must_have_the_models_shape() {
    let dir = tempfile::tempdir().unwrap();
    let noise = dir.path().join("noise.json");
    fs::write(&noise, serde_json::to_string(&vec![vec![0.0; 32]; 16]).unwrap()).unwrap();
    let result = predicted(dir.path(), &["--noise", noise.to_str().unwrap(), "--steps", "2"]);
    assert_eq!(result["denoising_steps"], 2);
    fs::write(&noise, "[1, 2, 3]").unwrap();
    let output = xtask(&["predict", "--observation", OBSERVATION, "--noise", noise.to_str().unwrap()]);
    assert!(!output.status.success());
    assert!(text(&output).contains("got 3 elements"), "{}", text(&output));
}

#[test]
fn written_weights_predict_what_generated_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("checkpoint");
    let folder = folder.to_str().unwrap();
    let output = xtask(&["synth", "--config", "mini", "--seed", "5", "--out", folder]);
    assert!(output.status.success(), "{}", text(&output));
    let inspected = xtask(&["inspect", folder, "--check"]);
    assert!(inspected.status.success(), "{}", text(&inspected));
    assert!(text(&inspected).contains("fits its config"), "{}", text(&inspected));
    let written = predicted(dir.path(), &["--weights", folder]);
    assert_eq!(written["metadata"], "the checkpoint's");
    assert_eq!(written["actions"], predicted(dir.path(), &["--weights", "synthetic:5"])["actions"]);
    let again = xtask(&["synth", "--config", "mini", "--out", folder]);
    assert!(!again.status.success(), "an existing folder was overwritten");
}

#[test]
fn inspect_counts_the_tensors_of_n1_5() {
    // 899 tensors, 887 needed: the size check of the published checkpoint.
    let output = xtask(&["inspect", "synthetic", "--config", "n1.5"]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let line = |name: &str| text.lines().find(|l| l.trim_start().starts_with(name)).unwrap().to_string();
    assert_eq!(
        line("all").split_whitespace().collect::<Vec<_>>(),
        ["all", "899", "2724163520", "5448327040"]
    );
    assert_eq!(line("needed").split_whitespace().nth(1), Some("887"));
}

#[test]
fn a_wrong_name_says_what_there_is() {
    let output = xtask(&["predict", "--observation", OBSERVATION, "--config", "huge"]);
    assert!(!output.status.success());
    assert!(text(&output).contains("\"n1.5\" and \"mini\""), "{}", text(&output));
    let output = xtask(&["predict", "--observation", OBSERVATION, "--data-config", "fourier_gr1_arm_only"]);
    assert!(!output.status.success());
    assert!(text(&output).contains("fourier_gr1_arms_only"), "{}", text(&output));
}
