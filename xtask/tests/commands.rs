//! `demo`, `predict`, `synth` and `inspect` as a person types them, on the observation that ships with the project.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const OBSERVATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gr00t-serve/assets/demo/observation.json");

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).env("GR00T_TT_CACHE", "off").args(arguments).output().unwrap()
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
fn the_demo_is_judged_shown_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("folder/demo.png");
    let output =
        xtask(&["demo", "--once", "--config", "mini", "--port", "0", "--plot", plot.to_str().unwrap()]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    for part in [
        "left_arm [16, 7]",
        "right_arm [16, 7]",
        "left_hand [16, 6]",
        "right_hand [16, 6]",
        "judged       pass",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(image::open(plot).unwrap().width() > 1000);
}

#[test]
fn the_demos_page_is_open_until_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("demo.png");
    let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["demo", "--port", "0", "--plot", plot.to_str().unwrap()])
        .env("GR00T_TT_CACHE", "off")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let page = lines.by_ref().find_map(|line| line.strip_prefix("page         http://").map(str::to_owned));
    let page = page.expect("the page's address");
    assert!(lines.any(|line| line == "Ctrl-C ends the server"));
    let (address, path) = page.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<title>gr00t-serve</title>"), "{answer}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(TcpStream::connect(address).is_err(), "somebody still listens on {address}");
}

#[test]
fn a_demo_that_cannot_be_served_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("demo.png");
    let output = xtask(&["demo", "--once", "--port", &port, "--plot", plot.to_str().unwrap()]);
    assert!(!output.status.success());
    assert!(text(&output).contains("Address already in use"), "{}", text(&output));
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
    assert!(text(&output).contains("noise of shape [3], wanted [16, 32]"), "{}", text(&output));
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
fn predict_does_not_run_on_the_card_and_says_so() {
    for model in ["reference", "device"] {
        let arguments = ["predict", "--observation", OBSERVATION, "--device", "metal", "--model", model];
        fails_in_one_line(&arguments, "verify, eval and bench run on the card");
    }
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

/// Runs and fails with one line on standard error that holds `wanted`.
fn fails_in_one_line(arguments: &[&str], wanted: &str) {
    let output = xtask(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} passed");
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    assert!(errors.contains(wanted), "no {wanted:?} in {errors}");
}

#[test]
fn a_result_file_that_cannot_be_written_is_known_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("no/result.json");
    let nowhere = nowhere.to_str().unwrap();
    fails_in_one_line(
        &["predict", "--observation", OBSERVATION, "--json", nowhere],
        "no/result.json: No such",
    );
    fails_in_one_line(&["verify", "/nonexistent", "--json", nowhere], "no/result.json: No such");
    let folder = dir.path().to_str().unwrap();
    fails_in_one_line(&["demo", "--once", "--plot", folder], "is a folder, wanted a file to write");
}

#[test]
fn keys_with_line_ends_do_not_break_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("observation.json");
    let text = fs::read_to_string(OBSERVATION).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["state"]["a\nb\u{1b}[31m"] = serde_json::json!([[1.0]]);
    let image = Path::new(OBSERVATION).with_file_name(json["images"]["ego_view"].as_str().unwrap());
    json["images"]["ego_view"] = image.to_str().unwrap().into();
    fs::write(&path, json.to_string()).unwrap();
    fails_in_one_line(
        &["predict", "--observation", path.to_str().unwrap()],
        r"state a\nb\u{1b}[31m is unknown",
    );
}

#[test]
fn an_image_of_another_size_goes_through_with_a_resolution_policy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("observation.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(OBSERVATION).unwrap()).unwrap();
    image::RgbImage::new(64, 48).save(dir.path().join("small.png")).unwrap();
    json["images"]["ego_view"] = "small.png".into();
    fs::write(&path, json.to_string()).unwrap();
    let path = path.to_str().unwrap();
    fails_in_one_line(&["predict", "--observation", path], "frame is 64x48, the metadata wants 256x256");
    for policy in ["resize", "letterbox"] {
        let output = xtask(&["predict", "--observation", path, "--resolution", policy]);
        assert!(output.status.success(), "{}", text(&output));
    }
}

/// NaN in one weight of the vision tower must reach the actions and be refused there, not be swallowed on the way.
#[test]
fn a_broken_weight_gives_an_error_and_no_actions() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("checkpoint");
    let output = xtask(&["synth", "--out", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let shard = folder.join("model-00001-of-00001.safetensors");
    let mut bytes = fs::read(&shard).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[header..header + 2].copy_from_slice(&half::bf16::NAN.to_le_bytes());
    fs::write(&shard, bytes).unwrap();
    let folder = folder.to_str().unwrap();
    fails_in_one_line(&["predict", "--observation", OBSERVATION, "--weights", folder], "is NaN");
    fails_in_one_line(&["inspect", folder, "--check"], "patch_embedding.weight is NaN at element 0");
}

#[test]
fn an_interrupted_synth_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("checkpoint");
    let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["synth", "--config", "n1.5", "--out", folder.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while fs::read_dir(dir.path()).unwrap().next().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "ended before it wrote anything");
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(!child.wait().unwrap().success());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn inspect_reads_the_files_beside_the_weights_and_flags_constant_actions() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("checkpoint");
    let path = folder.to_str().unwrap();
    assert!(xtask(&["synth", "--out", path]).status.success());
    let file = folder.join("experiment_cfg/metadata.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let hand = &mut metadata["gr1"]["statistics"]["action"]["left_hand"];
    hand["max"] = hand["min"].clone();
    fs::write(&file, metadata.to_string()).unwrap();
    let output = text(&xtask(&["inspect", path, "--check"]));
    assert!(output.contains("metadata.json: agibot_genie1, gr1, oxe_droid"), "{output}");
    assert!(output.contains("gr1: the statistics of action left_hand have no range"), "{output}");
    fs::write(&file, "{").unwrap();
    fails_in_one_line(&["inspect", path], "metadata.json: not an embodiment metadata file");
}

#[test]
fn a_wrong_command_line_is_one_line_too() {
    let seed = ["predict", "--observation", OBSERVATION, "--seed", "-1"];
    fails_in_one_line(&seed, "invalid value '-1' for '--seed <SEED>': invalid digit");
    fails_in_one_line(&["predict"], "required arguments were not provided: --observation <FILE>");
    fails_in_one_line(&["inspekt", "synthetic"], "unrecognized subcommand 'inspekt' tip: a similar");
    fails_in_one_line(&[seed[0], seed[1], seed[2], "--noise", "x", "--seed", "1"], "cannot be used with");
}

#[test]
fn bench_writes_what_was_asked_for_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bench.json");
    let output = xtask(&["bench", "--only", "predict/", "--reps", "2", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let json: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert!(results[0]["name"].as_str().unwrap().starts_with("predict/mixed_dit/mini/1view/s"));
    assert_eq!(results[0]["n"], 2);
    assert!(results[0]["median"].as_f64().unwrap() > 0.0);
    assert_eq!(json["machine"]["threads"].as_u64().map(|threads| threads > 0), Some(true));
}
