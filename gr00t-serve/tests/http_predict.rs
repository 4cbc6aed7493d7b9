//! `/predict` and `/act`: fields, codes, equal bytes for equal requests.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod rig;

use gr00t_host::noise::torch_randn;
use rig::{Rig, with};
use serde_json::{Value, json};

fn errors(answer: &rig::Answer) -> String {
    answer.json["detail"]["errors"].to_string()
}

#[tokio::test]
async fn the_answer_has_the_python_servers_fields_and_ours() {
    let rig = Rig::new();
    let answer = rig.predict(&rig.body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let json = &answer.json;
    assert_eq!(json["action_horizon"], 16);
    assert_eq!(json["action_dims"], json!({"left_arm": 7, "right_arm": 7, "left_hand": 6, "right_hand": 6}));
    assert_eq!(json["actions"]["left_arm"].as_array().unwrap().len(), 16);
    assert_eq!(json["actions"]["right_hand"][15].as_array().unwrap().len(), 6);
    assert_eq!(json["images"]["ego_view"], json!({"frames": 1, "received_hw": [256, 256]}));
    assert_eq!((&json["embodiment"], &json["embodiment_id"]), (&json!("gr1"), &json!(24)));
    assert_eq!((&json["noise_source"], &json["seed"]), (&json!("seed"), &json!(0)));
    assert_eq!(json["version"], "n15");
    assert!(json["instruction"].as_str().unwrap().starts_with("['pick"));
    for part in ["decode", "encode", "queue", "device", "decode_actions", "total"] {
        assert!(json["timing_ms"][part].is_number(), "{part}");
    }
    assert!(json["timing_ms"]["stages"]["denoise"].is_number());
    assert!(json.get("action_pred_normalized").is_none());
    assert!(answer.headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn equal_requests_get_equal_actions_and_the_seed_is_0_by_default() {
    let rig = Rig::new();
    let first = rig.predict(&rig.body).await.json["actions"].clone();
    let default = rig.predict(&with(&rig.body, "seed", Value::Null)).await.json["actions"].clone();
    let other = rig.predict(&with(&rig.body, "seed", json!(1))).await.json["actions"].clone();
    assert_eq!(first, default);
    assert_ne!(first, other);
}

#[tokio::test]
async fn noise_of_the_clients_own_that_equals_a_seeds_gives_the_seeds_actions() {
    let rig = Rig::new();
    let noise: Vec<Vec<f32>> = torch_randn(5, 16 * 32).chunks(32).map(<[f32]>::to_vec).collect();
    let own = rig.predict(&with(&with(&rig.body, "seed", Value::Null), "noise", json!(noise))).await;
    let seeded = rig.predict(&with(&rig.body, "seed", json!(5))).await;
    assert_eq!(own.json["actions"], seeded.json["actions"]);
    assert_eq!((&own.json["noise_source"], &own.json["seed"]), (&json!("client"), &Value::Null));
}

#[tokio::test]
async fn aliases_flat_state_frame_lists_and_normalized_actions_are_understood() {
    let rig = Rig::new();
    let wanted = rig.predict(&rig.body).await.json["actions"].clone();
    for alias in ["language", "prompt"] {
        let body = with(&rig.body, alias, rig.body["instruction"].clone());
        let answer = rig.predict(&with(&body, "instruction", Value::Null)).await;
        assert_eq!(answer.json["actions"], wanted, "{alias}");
    }
    let mut body = with(&rig.body, "return_normalized", json!(true));
    body["state"]["left_arm"] = rig.body["state"]["left_arm"][0].clone();
    body["images"]["ego_view"] = json!([rig.body["images"]["ego_view"]]);
    let answer = rig.predict(&body).await;
    assert_eq!(answer.json["actions"], wanted);
    assert_eq!(answer.json["action_pred_normalized"][0].as_array().unwrap().len(), 32);
    assert_eq!(answer.json["action_pred_valid_hd"][0].as_array().unwrap().len(), 26);
}

#[tokio::test]
async fn what_is_not_the_form_is_422() {
    let rig = Rig::new();
    let deep = format!("{{\"images\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let text = rig.body.to_string();
    let nan = text.replacen("\"seed\":0", "\"seed\":NaN", 1);
    assert_ne!(nan, text);
    let bodies = [
        String::new(),
        "[]".into(),
        text[..text.len() / 2].to_owned(),
        deep,
        nan,
        with(&rig.body, "surprise", json!(1)).to_string(),
        with(&rig.body, "seed", json!(-1)).to_string(),
        with(&rig.body, "seed", json!("0")).to_string(),
        with(&rig.body, "state_dtype", json!("float16")).to_string(),
        with(&rig.body, "images", json!({"ego_view": 7})).to_string(),
        with(&rig.body, "state", json!({"left_arm": "x"})).to_string(),
        with(&rig.body, "instruction", Value::Null).to_string(),
        with(&rig.body, "prompt", json!("a second instruction")).to_string(),
        with(&rig.body, "images", Value::Null).to_string(),
        with(&rig.body, "state", json!({"left_arm": [[0.1], 0.2]})).to_string(),
    ];
    for body in bodies {
        let answer = rig.post("/predict", body.clone()).await;
        assert_eq!(answer.status, 422, "{}: {}", &body[..body.len().min(60)], answer.text);
        assert!(answer.json["detail"][0]["msg"].is_string());
    }
    assert_eq!(rig.predict(&rig.body).await.status, 200);
}

#[tokio::test]
async fn what_no_robot_has_is_refused_while_it_is_parsed() {
    let rig = Rig::new();
    let key = |i: usize| (format!("k{i}"), json!([0]));
    let twice = |field: &str, key: &str| {
        let text = rig.body.to_string();
        let value = rig.body[field][key].to_string();
        let pair = format!("\"{key}\":{value}");
        text.replacen(&pair, &format!("{pair},{pair}"), 1)
    };
    let cases = [
        (
            with(&rig.body, "state", json!({"left_arm": vec![0; 1025]})).to_string(),
            "state left_arm: a list of more than 1024",
        ),
        (
            with(&rig.body, "state", json!({"left_arm": [vec![0.5; 1025]]})).to_string(),
            "state left_arm: a list of more than 1024",
        ),
        (
            with(&rig.body, "state", json!({"left_arm": vec![[0]; 17]})).to_string(),
            "state left_arm: more than 16 time steps",
        ),
        (with(&rig.body, "state", (0..65).map(key).collect()).to_string(), "state has more than 64 keys"),
        (
            with(&rig.body, "images", json!({"ego_view": vec![""; 17]})).to_string(),
            "image ego_view: a list of more than 16",
        ),
        (
            with(&rig.body, "images", json!({"ego_view": null})).to_string(),
            "image ego_view: invalid type: null, expected base64",
        ),
        (with(&rig.body, "images", json!("x")).to_string(), "expected images as an object of cameras"),
        (with(&rig.body, "noise", json!([vec![0; 1025]])).to_string(), "a list of more than 1024"),
        (with(&rig.body, "noise", json!(vec![[0]; 1025])).to_string(), "a list of more than 1024"),
        (twice("state", "left_arm"), "state left_arm: comes twice"),
        (twice("images", "ego_view"), "image ego_view: comes twice"),
        (
            json!([rig.body["images"], rig.body["state"], "x", null, 0, null, null, false]).to_string(),
            "the body is a list",
        ),
        (with(&rig.body, "state", json!({"a\nb": [0]})).to_string(), "state key a\\nb of 3 bytes"),
        (with(&rig.body, &format!("\n{}", "x".repeat(9999)), json!(1)).to_string(), "unknown field `\\nx"),
    ];
    for (body, wanted) in cases {
        let answer = rig.post("/predict", body).await;
        let said = answer.json["detail"][0]["msg"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.status, 422, "{wanted}: {}", answer.text);
        assert!(said.contains(wanted) && !said.contains('\n') && said.len() < 600, "{wanted}: {said}");
    }
    assert_eq!(rig.predict(&rig.body).await.status, 200);
}

#[tokio::test]
async fn what_does_not_fit_the_robot_is_400_with_every_problem() {
    let rig = Rig::new();
    let body = json!({
        "images": {"ego_view": "bm90IGEgcGljdHVyZQ==", "wrist": "%%%"},
        "state": {"left_arm": [[0.0]], "right_arm": [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], "elbow": [[1.0]]},
        "instruction": "", "embodiment": "so100", "seed": 1, "noise": [[0.0]],
    });
    let answer = rig.predict(&body).await;
    assert_eq!(answer.status, 400);
    let found = errors(&answer);
    for problem in [
        "image ego_view: not a PNG, JPEG, WebP or BMP: starts with 6e 6f 74 20",
        "image wrist: not base64",
        "state left_arm has 1 values",
        "state right_arm: 2 time steps",
        "state left_hand is missing",
        "state elbow is unknown",
        "instruction: empty",
        "embodiment: got",
        "noise: given beside a seed",
    ] {
        assert!(found.contains(problem), "{problem} is not in {found}");
    }
    assert!(!found.contains("ego_view is missing") && !found.contains("right_arm is missing"), "{found}");
    assert_eq!(answer.json["detail"]["inputs"]["state"]["left_arm"], 7);
}

#[tokio::test]
async fn frames_of_any_size_within_the_bounds_are_taken() {
    let rig = Rig::new();
    for (width, height, status) in [(64, 64, 200), (640, 480, 200), (63, 64, 400), (64, 4097, 400)] {
        let picture = bmp(width, height);
        let mut body = rig.body.clone();
        body["images"]["ego_view"] = json!(picture);
        let answer = rig.predict(&body).await;
        assert_eq!(answer.status, status, "{width}x{height}: {}", answer.text);
    }
}

/// Base64 of a grey BMP.
fn bmp(width: u32, height: u32) -> String {
    use base64::Engine as _;
    let row = (width * 3).next_multiple_of(4);
    let size = 54 + row * height;
    let mut file = b"BM".to_vec();
    for word in [size, 0, 54, 40, width, height] {
        file.extend(word.to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    file.extend([0; 24]);
    file.resize(size as usize, 90);
    base64::engine::general_purpose::STANDARD.encode(file)
}

#[tokio::test]
async fn act_gives_the_same_actions_for_the_same_seed() {
    let rig = Rig::new();
    let predicted = rig.predict(&rig.body).await.json["actions"].clone();
    let robot = rig.service.robot().unwrap();
    let (observation, _) = gr00t_serve::demo::observation(&robot).unwrap();
    let frame = &observation.images["ego_view"];
    let mut flat = json!({
        "gr00t_tt.seed": 0,
        "annotation.human.action.task_description": [rig.body["instruction"]],
        "video.ego_view": array(frame.rgb(), "|u1", &[1, frame.height(), frame.width(), 3]),
    });
    for (key, values) in rig.body["state"].as_object().unwrap() {
        let row: Vec<f64> = serde_json::from_value(values[0].clone()).unwrap();
        let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
        flat[format!("state.{key}")] = array(&bytes, "<f8", &[1, row.len()]);
    }
    let plain = json!({ "observation": flat }).to_string();
    let encoded = json!({ "encoded": plain }).to_string();
    for body in [plain, encoded] {
        let answer = rig.post("/act", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        for (key, wanted) in predicted.as_object().unwrap() {
            let got = &answer.json[format!("action.{key}")];
            let wanted: Vec<Vec<f32>> = serde_json::from_value(wanted.clone()).unwrap();
            assert_eq!(got["shape"], json!([16, wanted[0].len()]));
            let bytes: Vec<u8> = wanted.concat().iter().flat_map(|value| value.to_le_bytes()).collect();
            assert_eq!(*got, array(&bytes, "<f4", &[16, wanted[0].len()]), "{key}");
        }
    }
    assert_eq!(rig.post("/act", "{}").await.status, 422);
}

fn array(bytes: &[u8], dtype: &str, shape: &[usize]) -> Value {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({ "__numpy__": data, "dtype": dtype, "shape": shape })
}
