//! Random observation files and model configs: a result or a one-line error, never a panic; and a file that is no image.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is its assertion")]

use std::fs;
use std::path::Path;

use gr00t_host::config::{EagleConfig, Gr00tConfig};
use gr00t_host::observation::ObservationFile;
use gr00t_host::{Error, ModelConfig};
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON values as clients and damaged files might hold them.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{0,8}", inner), 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn valid_observation() -> Value {
    json!({
        "data_config": "fourier_gr1_arms_only",
        "images": {"ego_view": "frame.png"},
        "state": {"left_arm": [[0.0, 1.0]], "right_arm": [2.0]},
        "state_dtype": "float64",
        "instruction": "pick the pear",
        "metadata": "metadata.json"
    })
}

fn read(folder: &Path, bytes: &[u8]) -> Result<(), TestCaseError> {
    let path = folder.join("observation.json");
    fs::write(&path, bytes).unwrap();
    let result = ObservationFile::read(&path).and_then(|file| file.observation());
    if let Err(error) = result {
        prop_assert!(matches!(error, Error::Parse { .. } | Error::Observation(_)), "{error:?}");
        prop_assert!(!error.to_string().contains('\n'), "{error}");
    }
    Ok(())
}

#[test]
fn a_file_that_is_no_image_is_named_with_its_view_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let (path, image) = (folder.path().join("observation.json"), folder.path().join("frame.png"));
    fs::write(&path, valid_observation().to_string()).unwrap();
    fs::write(&image, "hello").unwrap();
    let message = ObservationFile::read(&path).unwrap().observation().unwrap_err().to_string();
    let what = "not a PNG, JPEG, WebP or BMP: starts with 68 65 6c 6c";
    assert!(message.contains(&format!("image ego_view ({}): {what}", image.display())), "{message}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let folder = tempfile::tempdir().unwrap();
        read(folder.path(), &bytes)?;
    }

    #[test]
    fn any_field_may_hold_anything(field in 0usize..6, value in any_json()) {
        let folder = tempfile::tempdir().unwrap();
        let mut observation = valid_observation();
        let key = observation.as_object().unwrap().keys().nth(field).unwrap().clone();
        observation[key] = value;
        read(folder.path(), observation.to_string().as_bytes())?;
    }

    #[test]
    fn config_with_any_field_changed_is_consistent_or_refused(pick in any::<prop::sample::Index>(), value in any_json()) {
        let mut file = serde_json::to_value(Gr00tConfig::default()).unwrap();
        replace_leaf(&mut file, pick, value);
        if let Ok(gr00t) = serde_json::from_value::<Gr00tConfig>(file) {
            check(ModelConfig::new(gr00t, EagleConfig::default()))?;
        }
    }

    #[test]
    fn eagle_config_with_any_field_changed_is_consistent_or_refused(pick in any::<prop::sample::Index>(), value in any_json()) {
        let mut file = serde_json::to_value(EagleConfig::default()).unwrap();
        replace_leaf(&mut file, pick, value);
        if let Ok(eagle) = serde_json::from_value::<EagleConfig>(file) {
            check(ModelConfig::new(Gr00tConfig::default(), eagle))?;
        }
    }
}

fn check(config: gr00t_host::Result<ModelConfig>) -> Result<(), TestCaseError> {
    match config {
        // A config that passes must be usable: sizes derived from it are finite and its plan can be listed.
        Ok(config) => prop_assert!(config.eagle.tokens_per_view() > 0),
        Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
    }
    Ok(())
}

/// Replaces one of `root`'s leaves, counted depth first.
fn replace_leaf(root: &mut Value, pick: prop::sample::Index, value: Value) {
    fn leaves<'a>(value: &'a mut Value, out: &mut Vec<&'a mut Value>) {
        match value {
            Value::Object(map) => map.values_mut().for_each(|v| leaves(v, out)),
            leaf => out.push(leaf),
        }
    }
    let mut all = Vec::new();
    leaves(root, &mut all);
    let at = pick.index(all.len());
    *all.swap_remove(at) = value;
}

#[test]
fn misspelt_fields_of_an_observation_file_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observation.json");
    fs::write(&path, r#"{"images": {}, "state": {}, "instructions": "go"}"#).unwrap();
    let message = ObservationFile::read(&path).unwrap_err().to_string();
    assert!(message.contains("instructions"), "{message}");
}

#[test]
fn several_time_steps_of_state_are_refused_with_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observation.json");
    fs::write(&path, r#"{"images": {}, "state": {"left_arm": [[1.0], [2.0]]}}"#).unwrap();
    let message = ObservationFile::read(&path).unwrap().observation().unwrap_err().to_string();
    assert!(message.contains("state left_arm: 2 time steps, wanted 1"), "{message}");
}

#[test]
fn state_that_is_not_numbers_is_refused_with_its_key_and_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observation.json");
    let state = r#"{"a": "x", "b": [null], "c": [[[1.0]]], "d": [[1.0], 2.0], "e\nf": {}}"#;
    fs::write(&path, format!(r#"{{"images": {{}}, "state": {state}}}"#)).unwrap();
    let message = ObservationFile::read(&path).unwrap().observation().unwrap_err().to_string();
    for key in ["state a: ", "state b: ", "state c: ", "state d: ", "state e\\nf: "] {
        assert!(message.contains(key), "no {key:?} in {message}");
    }
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let error = ObservationFile::read("/dev/zero").unwrap_err();
    assert!(matches!(error, Error::Parse { .. }), "{error}");
}
