//! State vectors and physical actions against NVIDIA's: `shared/golden/host/state_action.json` (made by its own N1.5 code, torch
//! 2.5.1 CPU), six data configs, both precisions.
//!
//! Everything is equal to the last bit.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gr00t_host::action::ActionTransform;
use gr00t_host::embodiment::{DataConfig, EmbodimentMetadata};
use gr00t_host::observation::Values;
use gr00t_host::state::StateTransform;
use serde_json::Value;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/host/state_action.json");
const MAX_STATE_DIM: usize = 64;
const MAX_ACTION_DIM: usize = 32;
const HORIZON: usize = 16;

struct Golden {
    name: String,
    json: Value,
    config: DataConfig,
    metadata: EmbodimentMetadata,
}

fn cases() -> Vec<Golden> {
    let Ok(text) = std::fs::read_to_string(PATH) else {
        println!("skipped: {PATH} is absent");
        return Vec::new();
    };
    let cases: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(cases.len(), 6);
    let case = |(name, json): (String, Value)| Golden {
        config: DataConfig::builtin(&name).unwrap(),
        metadata: serde_json::from_value(json["metadata"].clone()).unwrap(),
        name,
        json,
    };
    cases.into_iter().map(case).collect()
}

fn f64s(json: &Value) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn f32s(json: &Value) -> Vec<f32> {
    f64s(json).into_iter().map(|x| x as f32).collect()
}

fn state_in(case: &Golden, dtype: &str, values: fn(&Value) -> Values) -> BTreeMap<String, Values> {
    case.json[dtype]["state_in"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| (k.clone(), values(&v[0])))
        .collect()
}

#[test]
fn double_precision_states_are_nvidias_to_the_bit() {
    for case in cases() {
        let transform = StateTransform::new(&case.config, &case.metadata, MAX_STATE_DIM).unwrap();
        let got = transform.apply(&state_in(&case, "float64", |v| Values::F64(f64s(v)))).unwrap();
        let Values::F64(mut padded) = got.exact.clone() else { panic!("{}: f64 in, f32 out", case.name) };
        assert_eq!(case.json["float64"]["state_mask_true"].as_u64(), Some(got.dim() as u64), "{}", case.name);
        padded.resize(MAX_STATE_DIM, 0.0);
        assert_eq!(padded, f64s(&case.json["float64"]["state_out"][0]), "{}", case.name);
    }
}

#[test]
fn single_precision_states_are_nvidias_to_the_bit() {
    for case in cases() {
        let transform = StateTransform::new(&case.config, &case.metadata, MAX_STATE_DIM).unwrap();
        let got = transform.apply(&state_in(&case, "float32", |v| Values::F32(f32s(v)))).unwrap();
        assert!(matches!(got.exact, Values::F32(_)), "{}: f32 in, f64 out", case.name);
        let want = f32s(&case.json["float32"]["state_out"][0]);
        assert_eq!(got.values, want, "{}", case.name);
    }
}

#[test]
fn actions_are_nvidias_to_the_bit() {
    for case in cases() {
        let transform = ActionTransform::new(&case.config, &case.metadata, MAX_ACTION_DIM).unwrap();
        let pred: Vec<f32> = case.json["action_in"].as_array().unwrap().iter().flat_map(f32s).collect();
        let chunk = transform.apply(&pred, HORIZON).unwrap();
        let out = case.json["action_out"].as_object().unwrap();
        let keys: Vec<String> = chunk.groups.iter().map(|g| format!("action.{}", g.key)).collect();
        assert_eq!(keys.iter().collect::<Vec<_>>(), out.keys().collect::<Vec<_>>(), "{}", case.name);
        for group in &chunk.groups {
            let rows = out[&format!("action.{}", group.key)].as_array().unwrap();
            let want: Vec<f32> = rows.iter().flat_map(f32s).collect();
            assert_eq!(group.values, want, "{} {}", case.name, group.key);
        }
    }
}

#[test]
fn built_in_data_configs_are_nvidias() {
    for case in cases() {
        let golden = &case.json["data_config"];
        let prefixed = |prefix: &str, keys: Vec<&str>| -> Value {
            keys.iter().map(|k| format!("{prefix}.{k}")).collect()
        };
        let config = &case.config;
        assert_eq!(
            prefixed("video", config.video_keys.iter().map(String::as_str).collect()),
            golden["video_keys"]
        );
        assert_eq!(
            prefixed("state", config.state_keys.iter().map(|k| k.key.as_str()).collect()),
            golden["state_keys"]
        );
        assert_eq!(
            prefixed("action", config.action_keys.iter().map(|k| k.key.as_str()).collect()),
            golden["action_keys"]
        );
        assert_eq!(config.language_key, golden["language_key"].as_str().unwrap());
        assert_eq!(config.embodiment.name(), case.json["embodiment_tag"].as_str().unwrap());
        assert_eq!(
            config.embodiment.slot().map(|s| s as u64),
            case.json["float32"]["embodiment_id"].as_u64()
        );
        assert_eq!(config.action_horizon, HORIZON);

        let mut modes = serde_json::Map::new();
        let mut rotations = serde_json::Map::new();
        for transform in golden["transforms"].as_array().unwrap() {
            if transform["type"] == "StateActionSinCosTransform" {
                let keys = transform["apply_to"].as_array().unwrap().iter();
                modes.extend(keys.map(|k| (k.as_str().unwrap().to_owned(), "sin_cos".into())));
            }
            modes.extend(transform["normalization_modes"].as_object().unwrap().clone());
            rotations.extend(transform["target_rotations"].as_object().unwrap().clone());
        }
        for (side, specs) in [("state", &config.state_keys), ("action", &config.action_keys)] {
            for spec in specs {
                let key = format!("{side}.{}", spec.key);
                let mode = modes.remove(&key).unwrap_or_else(|| "none".into());
                assert_eq!(mode, spec.mode.name(), "{} {key}", case.name);
                let rotation = rotations.remove(&key).map(|r| r.as_str().unwrap().to_owned());
                assert_eq!(rotation, spec.rotation.map(|r| r.to_string()), "{} {key}", case.name);
            }
        }
        assert!(modes.is_empty() && rotations.is_empty(), "{}: keys without a spec", case.name);
    }
}
