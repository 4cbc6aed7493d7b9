//! The program itself: its boot log against the patterns of both launchers, its end on SIGTERM, what it refuses.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Start patterns of tt-model's phases (`boot_progress.py`), in order.
const TT_MODEL: [(&str, &[&str]); 5] = [
    ("server", &["Started server process", "Waiting for application startup"]),
    ("device", &["Opening user mode device driver", "Starting devices in cluster"]),
    ("weights", &["Fetching ", "Loading pipeline", "safetensors", "Loading weights", "Loading checkpoint"]),
    (
        "warm-up",
        &[
            "Warmup",
            "warmup",
            "Warming up",
            "warming up",
            "Warm up",
            "warm up",
            "Capturing trace",
            "Compiling",
        ],
    ),
    ("ready", &["Application startup complete"]),
];
/// Start patterns of tt-cli's rows (`phases.py`), in order.
const TT_CLI: [(&str, &[&str]); 4] = [
    ("service", &["Settings init:", "Settings resolved:", "Started server process"]),
    (
        "device",
        &[
            "setup_runner_environment",
            "TT_VISIBLE_DEVICES",
            "Device 0: Loading",
            "Opening user mode device driver",
        ],
    ),
    (
        "load",
        &[
            "Loading checkpoint shards",
            "Loading weights:",
            "Loading layers:",
            "Initializing TTNN",
            "Loading pipeline",
        ],
    ),
    ("warm-up", &["[warmup]", "Starting model warmup"]),
];
/// What tt-cli takes for the end of its rows.
const TT_CLI_DONE: [&str; 4] = [
    "Created mesh device",
    "Model loaded and pipeline ready",
    "Model warmup completed",
    "Application startup complete",
];

fn server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gr00t-serve"));
    for (name, _) in std::env::vars() {
        if ["GR00T_", "HF_", "TT_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env_remove("HOME").stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Kills the process if a test ends early.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every phase begins, in order, and none of its words comes before its turn.
fn check_order(log: &[String], phases: &[(&str, &[&str])]) {
    let begins = |words: &[&str]| log.iter().position(|line| words.iter().any(|word| line.contains(word)));
    let firsts: Vec<usize> = phases
        .iter()
        .map(|(name, words)| begins(words).unwrap_or_else(|| panic!("{name} never begins in {log:#?}")))
        .collect();
    assert!(firsts.is_sorted_by(|a, b| a < b), "{firsts:?} in {log:#?}");
}

#[test]
fn boot_log_fits_both_launchers_and_sigterm_ends_it_well() {
    let mut command = server();
    command.args(["--weights", "synthetic", "--config", "mini", "--port", "0", "--warmup-runs", "1"]);
    let mut process = Killed(command.spawn().unwrap());
    let mut reader = BufReader::new(process.0.stderr.take().unwrap());
    let mut log = Vec::new();
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "ended early: {log:#?}");
        log.push(line.trim_end().to_owned());
        if line.contains("Application startup complete") {
            break;
        }
    }
    check_order(&log, &TT_MODEL);
    check_order(&log, &TT_CLI);
    let done = |word: &str| {
        log.iter().position(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {log:#?}"))
    };
    assert!(TT_CLI_DONE.map(done).is_sorted());
    assert!(log.iter().any(|line| line.contains("multidevice with 1 devices and grid (1, 1) is created")));

    assert!(Command::new("kill").args(["-TERM", &process.0.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(process.0.wait().unwrap().success(), "{rest}");
    let at = |word: &str| rest.find(word).unwrap_or_else(|| panic!("{word} is not in {rest}"));
    assert!(at("Releasing traces and device tensors") < at("Closing device"));
}

/// Standard error of a run that must fail.
fn refusal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = server();
    let output = command.args(arguments).envs(environment.iter().copied()).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_port_in_use_is_said_in_the_words_that_launchers_quote() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refusal(&["--weights", "synthetic", "--config", "mini", "--port", &port], &[]);
    assert!(said.contains("Address already in use"), "{said}");
}

#[test]
fn a_fidelity_that_is_not_reached_fails_the_boot() {
    let arguments = ["--weights", "synthetic", "--config", "mini", "--port", "0", "--warmup-pcc-min", "1"];
    let said = refusal(&arguments, &[]);
    assert!(said.contains("warm-up fidelity: PCC 0.99"), "{said}");
    assert!(!said.contains("Application startup complete"));
}

#[test]
fn weights_that_are_not_there_and_a_card_without_tt_metal_are_explained() {
    let said = refusal(&["--weights", "/nonexistent/weights"], &[]);
    assert!(said.contains("/nonexistent/weights"), "{said}");
    let said =
        refusal(&["--weights", "synthetic", "--config", "mini", "--port", "0", "--device", "metal"], &[]);
    assert!(said.contains("tt-metal"), "{said}");
}

#[test]
fn misspelt_variables_are_refused_before_anything_is_opened() {
    let said = refusal(&["--check"], &[("GR00T_POLICI", "bf16"), ("GR00T_CLIP_ACTIONS", "maybe")]);
    assert!(said.contains("GR00T_POLICI: no such option") && said.contains("GR00T_CLIP_ACTIONS: "), "{said}");
}
