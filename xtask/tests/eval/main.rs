//! `cargo xtask eval` as a person types it, on a dataset that the test writes.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod dataset;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dataset::{FPS, JOINTS, STEPS, TASKS, joint, picture};
use serde_json::{Value, json};

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.env("GR00T_TT_CACHE", "off").args(arguments);
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn eval(folder: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["eval", folder.to_str().unwrap(), "--data-config", "so100"];
    all.extend(arguments);
    xtask(&all).output().unwrap()
}

/// The JSON of an evaluation that succeeds, and what it printed.
fn evaluated(folder: &Path, arguments: &[&str]) -> (Value, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("eval.json");
    let output = eval(folder, &[arguments, &["--json", file.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output));
    (serde_json::from_slice(&fs::read(file).unwrap()).unwrap(), text(&output))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn recorded_and_predicted_actions_are_compared_step_by_step() {
    let dir = tempfile::tempdir().unwrap();
    dataset::write(dir.path());
    dataset::write_stills(dir.path());
    let plots = dir.path().join("plots");
    let (report, text) = evaluated(dir.path(), &["--trajs", "2", "--plot", plots.to_str().unwrap()]);
    assert_eq!(report["statistics"], "computed from the dataset's 2 episodes");
    assert_eq!(report["trajectories"].as_array().unwrap().len(), 2);
    let mut means = Vec::new();
    for (episode, trajectory) in report["trajectories"].as_array().unwrap().iter().enumerate() {
        assert_eq!(trajectory["instruction"], TASKS[episode]);
        assert_eq!(trajectory["steps"], STEPS);
        assert_eq!(trajectory["inference_at"], json!([0, 16, 32]));
        let mut errors = Vec::new();
        for (place, found) in trajectory["joints"].as_array().unwrap().iter().enumerate() {
            let (recorded, predicted) = (numbers(&found["recorded"]), numbers(&found["predicted"]));
            let expected = |later: usize| -> Vec<f64> {
                (0..STEPS).map(|step| f64::from(joint(episode, step + later, place))).collect()
            };
            assert_eq!(recorded, expected(1), "{}", found["name"]);
            assert_eq!(numbers(&found["state"]), expected(0), "{}", found["name"]);
            assert_eq!(predicted.len(), STEPS);
            errors.extend(recorded.iter().zip(&predicted).map(|(r, p)| (r - p).powi(2)));
        }
        assert_eq!(errors.len(), STEPS * JOINTS);
        let mse = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(mse > 0.0 && (trajectory["mse"].as_f64().unwrap() - mse).abs() < 1e-9 * mse);
        means.push(mse);
        assert!(image::open(plots.join(format!("episode_{episode:06}.png"))).unwrap().width() > 1000);
    }
    let shown = format!("average MSE of 2 episodes: {:.6}", means.iter().sum::<f64>() / 2.0);
    assert!(text.contains(&shown), "no {shown:?} in\n{text}");
}

/// The second prediction of an episode is what `predict` gives for the observation of its step.
#[test]
fn the_policy_sees_what_the_robot_saw() {
    let dir = tempfile::tempdir().unwrap();
    dataset::write(dir.path());
    dataset::write_stills(dir.path());
    let key =
        |width: usize| json!({"absolute": true, "rotation_type": null, "shape": [width], "continuous": true});
    let statistics = |width: usize| {
        let of = |value: f64| vec![value; width];
        json!({"max": of(1.5), "min": of(-1.25), "mean": of(0.0), "std": of(1.0), "q01": of(-1.0), "q99": of(1.0)})
    };
    let (keys, ranges) = (
        json!({"single_arm": key(5), "gripper": key(1)}),
        json!({"single_arm": statistics(5), "gripper": statistics(1)}),
    );
    let metadata = json!({"new_embodiment": {
        "statistics": {"state": ranges, "action": ranges},
        "modalities": {
            "video": {"webcam": {"resolution": [dataset::SIDE, dataset::SIDE], "channels": 3, "fps": FPS as f64}},
            "state": keys, "action": keys,
        },
        "embodiment_tag": "new_embodiment",
    }});
    let (step, seed) = (8, 5);
    let state: Vec<f32> = (0..JOINTS).map(|place| joint(0, step, place)).collect();
    let observation = json!({
        "data_config": "so100", "images": {"webcam": "frame.png"}, "instruction": TASKS[0], "metadata": "metadata.json",
        "state": {"single_arm": [state[..5]], "gripper": [state[5..]]}, "state_dtype": "float32",
    });
    fs::write(dir.path().join("metadata.json"), metadata.to_string()).unwrap();
    fs::write(dir.path().join("observation.json"), observation.to_string()).unwrap();
    picture(0, step).save(dir.path().join("frame.png")).unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let predict =
        ["predict", "--model", "device", "--observation", &path("observation.json"), "--seed", "6", "--json"];
    let output = xtask(&predict).arg(path("predicted.json")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let predicted: Value = serde_json::from_slice(&fs::read(path("predicted.json")).unwrap()).unwrap();

    let (metadata, seed) = (path("metadata.json"), seed.to_string());
    let options = ["--metadata", &metadata, "--action-horizon", "8", "--steps", "16", "--seed", &seed];
    let (report, _) = evaluated(dir.path(), &options);
    for (place, found) in report["trajectories"][0]["joints"].as_array().unwrap().iter().enumerate() {
        let (key, place) = if place < 5 { ("single_arm", place) } else { ("gripper", 0) };
        let rows = predicted["actions"][key].as_array().unwrap();
        let wanted: Vec<f64> =
            rows.iter().take(8).map(|row| f64::from(row[place].as_f64().unwrap() as f32)).collect();
        assert_eq!(numbers(&found["predicted"])[8..], wanted[..], "{}", found["name"]);
    }
}

#[test]
fn a_video_gives_the_frames_of_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let [stills, video] = ["stills", "video"].map(|name| dir.path().join(name));
    for folder in [&stills, &video] {
        dataset::write(folder);
    }
    dataset::write_stills(&stills);
    if !dataset::write_videos(&video) {
        println!("skipped: there is no ffmpeg to write and read videos");
        return;
    }
    let options = ["--action-horizon", "7", "--keys", "gripper"];
    let [(stills, _), (video, _)] = [&stills, &video].map(|folder| evaluated(folder, &options));
    let predicted = |report: &Value| report["trajectories"][0]["joints"][0]["predicted"].clone();
    assert_eq!(predicted(&stills).as_array().unwrap().len(), STEPS);
    assert_eq!(predicted(&stills), predicted(&video));
}

/// Fails with one line on standard error that holds `wanted`.
fn fails(output: &Output, wanted: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "passed, wanted {wanted:?}");
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    assert!(errors.contains(wanted), "no {wanted:?} in {errors}");
}

#[test]
fn what_cannot_be_evaluated_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fails(&eval(&dir.path().join("nowhere"), &[]), "no folder meta in it");
    dataset::write(dir.path());
    fails(&eval(dir.path(), &[]), "no such video, and no folder");
    fails(&eval(dir.path(), &["--start-traj", "2"]), "episodes 2 to 3, exclusive, of 2 in the dataset");
    fails(&eval(dir.path(), &["--keys", "claw"]), "so100 has no action claw");
    fails(&eval(dir.path(), &["--action-horizon", "17"]), "action horizon 17, wanted 1 to 16");
    let folder = dir.path().to_str().unwrap();
    fails(&xtask(&["eval", folder]).output().unwrap(), "--data-config is not given");
    let other = xtask(&["eval", folder, "--data-config", "fourier_gr1_arms_only"]).output().unwrap();
    fails(&other, "cameras ego_view are not in the metadata, which has webcam");

    let file = dataset::data_file(dir.path(), 0);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    fails(&eval(dir.path(), &[]), "episode_000000.parquet");
    fs::remove_file(&file).unwrap();
    fails(&eval(dir.path(), &[]), "episode_000000.parquet: No such file");

    let info = dir.path().join("meta/info.json");
    let newer = fs::read_to_string(&info).unwrap().replace("v2.1", "v3.0");
    fs::write(&info, newer).unwrap();
    fails(&eval(dir.path(), &[]), "codebase_version v3.0, wanted v2.0 or v2.1");
}

#[test]
fn a_video_without_a_decoder_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    dataset::write(dir.path());
    let videos = dir.path().join("videos/chunk-000/observation.images.webcam");
    fs::create_dir_all(&videos).unwrap();
    fs::write(videos.join("episode_000000.mp4"), "no video").unwrap();
    let arguments = ["eval", dir.path().to_str().unwrap(), "--data-config", "so100"];
    fails(
        &xtask(&arguments).env("PATH", "").output().unwrap(),
        "ffprobe, which decodes videos, cannot be started",
    );
    let output = xtask(&arguments).output().unwrap();
    if !text(&output).contains("cannot be started") {
        fails(&output, "episode_000000.mp4: ffprobe failed");
    }
}
