//! `cargo xtask verify` on NVIDIA's results, and on copies of them with one fault each, which must all fail.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// Name → type, shape, bytes.
type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn golden() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden"));
    if !path.is_dir() {
        println!("skipped: {} is absent", path.display());
        return None;
    }
    Some(path.to_path_buf())
}

fn verify(folders: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).arg("verify").args(folders).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn tiny_mini_and_host_pass() {
    let Some(golden) = golden() else { return };
    let folders =
        ["tiny/a", "tiny/two_views", "tiny/sensitivity.json", "mini/gr1", "mini/droid_three_views", "host"];
    let output = verify(&folders.map(|f| golden.join(f)));
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("5 of 5 folders passed"), "{}", text(&output));
}

fn verify_on_device(folders: &[PathBuf], options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["verify", "--model", "device"])
        .args(options)
        .args(folders)
        .output()
        .unwrap()
}

#[test]
fn tiny_passes_on_the_device_in_every_policy_and_checked() {
    let Some(golden) = golden() else { return };
    let folders = ["tiny/a", "tiny/two_views"].map(|f| golden.join(f));
    for policy in ["bf16", "mixed", "mixed_dit"] {
        for options in [&["--policy", policy][..], &["--policy", policy, "--checked", "--threads", "3"]] {
            let output = verify_on_device(&folders, options);
            assert!(output.status.success(), "{policy}: {}", text(&output));
            assert!(text(&output).contains("observed run's bytes"), "{}", text(&output));
        }
    }
}

#[test]
fn a_wrong_golden_stage_fails_on_the_device() {
    let Some(golden) = golden() else { return };
    let changed = changed_case(&golden, |tensors| {
        let (_, _, data) = tensors.get_mut("out.adapter.out").unwrap();
        data.rotate_left(4);
    });
    let output = verify_on_device(&[changed.path().to_path_buf()], &[]);
    assert!(!output.status.success());
    assert!(text(&output).contains("wanted PCC 0.999"), "{}", text(&output));
}

/// Copies `tiny/a` and changes its golden tensors.
fn changed_case(golden: &Path, change: impl FnOnce(&mut Tensors)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let from = golden.join("tiny/a");
    for file in ["case.json", "config.json", "eagle_config.json", "model.safetensors"] {
        fs::copy(from.join(file), copy.path().join(file)).unwrap();
    }
    let bytes = fs::read(from.join("golden.safetensors")).unwrap();
    let mut tensors: Tensors = SafeTensors::deserialize(&bytes)
        .unwrap()
        .iter()
        .map(|(name, view)| (name.to_string(), (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
        .collect();
    change(&mut tensors);
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    fs::write(copy.path().join("golden.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    copy
}

fn fails_saying(folder: &Path, wanted: &str) {
    let output = verify(&[folder.to_path_buf()]);
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
}

#[test]
fn an_unchanged_copy_passes() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |_| ());
    let output = verify(&[copy.path().to_path_buf()]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn one_wrong_value_of_a_stage_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| set_f32(tensors, "out.llm.layer.1", 7, |v| v + 0.01));
    fails_saying(copy.path(), "llm.layer.1");
}

#[test]
fn an_action_off_by_two_in_ten_thousand_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| set_f32(tensors, "out.action_pred", 0, |v| v + 2e-4));
    fails_saying(copy.path(), "wanted PCC 0.9999999, max abs 1.00e-4");
}

#[test]
fn nan_in_the_golden_file_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| set_f32(tensors, "out.vision.mlp1", 3, |_| f32::NAN));
    fails_saying(copy.path(), "golden out.vision.mlp1 holds NaN at element 3");
}

#[test]
fn a_missing_stage_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| drop(tensors.remove("out.adapter.block.0").unwrap()));
    fails_saying(copy.path(), "not in the golden file");
}

#[test]
fn a_stage_that_the_model_does_not_have_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| {
        let block = tensors["out.adapter.block.0"].clone();
        tensors.insert("out.adapter.block.9".into(), block);
    });
    fails_saying(copy.path(), "never produced by the model");
}

#[test]
fn a_config_that_contradicts_the_golden_file_fails() {
    let Some(golden) = golden() else { return };
    for (changes, wanted) in [
        (&["/action_head_cfg/num_inference_timesteps"][..], "never produced by the model"),
        (&["/action_horizon", "/action_head_cfg/action_horizon"][..], "says action_horizon 2"),
    ] {
        let copy = changed_case(&golden, |_| ());
        let path = copy.path().join("config.json");
        let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for pointer in changes {
            *config.pointer_mut(pointer).unwrap() = 2.into();
        }
        fs::write(&path, config.to_string()).unwrap();
        fails_saying(copy.path(), wanted);
    }
}

#[test]
fn a_missing_input_fails() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |tensors| drop(tensors.remove("in.noise").unwrap()));
    fails_saying(copy.path(), "golden in.noise is missing");
}

#[test]
fn missing_weights_fail() {
    let Some(golden) = golden() else { return };
    let copy = changed_case(&golden, |_| ());
    fs::remove_file(copy.path().join("model.safetensors")).unwrap();
    fails_saying(copy.path(), "model.safetensors");
}

#[test]
fn a_wrong_expectation_of_the_host_pipeline_fails() {
    let Some(golden) = golden() else { return };
    let copy = tempfile::tempdir().unwrap();
    let file = "torch_randn.json";
    fs::copy(golden.join(file), copy.path().join(file)).unwrap();
    let prompts = fs::read_to_string(golden.join("host/prompts.json")).unwrap();
    fs::write(copy.path().join("prompts.json"), prompts.replacen("29245", "29246", 1)).unwrap();
    fails_saying(copy.path(), "first difference at 277");
}

#[test]
fn an_absurd_length_in_an_expectation_fails_and_takes_no_memory() {
    let Some(golden) = golden() else { return };
    let copy = tempfile::tempdir().unwrap();
    let prompts = fs::read_to_string(golden.join("host/prompts.json")).unwrap();
    let mut prompts: serde_json::Value = serde_json::from_str(&prompts).unwrap();
    prompts["cases"][0]["plain"]["ids_rle"] = serde_json::json!([[5, 1_u64 << 42]]);
    fs::write(copy.path().join("prompts.json"), prompts.to_string()).unwrap();
    fails_saying(copy.path(), "more than 1048576 ids expected");
}

#[test]
fn an_absent_picture_fails_and_the_others_are_still_judged() {
    let Some(golden) = golden() else { return };
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("images")).unwrap();
    for file in ["images_u8.safetensors", "images.json"] {
        fs::copy(golden.join("host").join(file), copy.path().join(file)).unwrap();
    }
    let picture = "images/img5_100x80.png";
    fs::copy(golden.join("host").join(picture), copy.path().join(picture)).unwrap();
    fs::copy(golden.join("host").join(picture), copy.path().join("images/other.png")).unwrap();
    let output = verify(&[copy.path().to_path_buf()]);
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    for wanted in ["150528 of 150528 equal", "img0_640x480.png: No such file", "not in images_u8.safetensors"]
    {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
}

#[test]
fn folders_of_no_known_form_are_refused_with_the_reason() {
    let empty = tempfile::tempdir().unwrap();
    fails_saying(empty.path(), "neither case.json nor the files of golden/host are in it");
    fails_saying(&empty.path().join("nowhere"), "no such folder");
    fs::write(empty.path().join("case.json"), r#"{"weights": {"procedural": {}}}"#).unwrap();
    fails_saying(empty.path(), "missing field `seed`");
}

/// Changes element `at` of the f32 tensor `name`.
fn set_f32(tensors: &mut Tensors, name: &str, at: usize, change: impl FnOnce(f32) -> f32) {
    let data = &mut tensors.get_mut(name).unwrap().2;
    let bytes: [u8; 4] = data[4 * at..][..4].try_into().unwrap();
    data[4 * at..][..4].copy_from_slice(&change(f32::from_le_bytes(bytes)).to_le_bytes());
}

fn diff(case: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).arg("diff").arg(case).args(options).output().unwrap()
}

#[test]
fn levels_agree_op_by_op_and_thread_counts_to_the_bit() {
    let Some(golden) = golden() else { return };
    let case = golden.join("tiny/a");
    let output = diff(&case, &["--against-isa", "portable"]);
    assert!(output.status.success(), "{}", text(&output));
    let output = diff(&case, &["--threads", "1", "--against-threads", "3", "--limit", "0"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn narrower_weights_diverge_and_the_first_op_that_does_is_named() {
    let Some(golden) = golden() else { return };
    let case = golden.join("tiny/a");
    let output = diff(&case, &["--policy", "mixed", "--against-policy", "bf16", "--limit", "0.001"]);
    assert!(!output.status.success());
    let text = text(&output);
    assert!(text.contains("vision") && text.contains("none diverges"), "{text}");
    assert!(text.contains("<- diverges") && text.contains("linear"), "{text}");
}
