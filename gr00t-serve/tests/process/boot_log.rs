//! The boot log against the patterns of both launchers.

use crate::server::{READY, Server, get};

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
    let mut server = Server::start(&["--cache-dir", "off"]);
    server.ready();
    let log = &server.log;
    check_order(log, &TT_MODEL);
    check_order(log, &TT_CLI);
    let done = |word: &str| {
        log.iter().position(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {log:#?}"))
    };
    assert!(TT_CLI_DONE.map(done).is_sorted());
    done("multidevice with 1 devices and grid (1, 1) is created");
    done("Loading weights: 100%|##########| ");
    done("cache path off)");

    let (rest, status) = server.stop();
    assert!(status.success(), "{rest}");
    let at = |word: &str| rest.find(word).unwrap_or_else(|| panic!("{word} is not in {rest}"));
    assert!(at("Releasing traces and device tensors") < at("Closing device"));
}

#[test]
fn while_it_starts_health_is_200_and_the_model_list_503() {
    let mut server = Server::start(&["--warmup-runs", "1000"]);
    let address = server.address("HTTP");
    server.until("Warmup 2/1000");
    let (status, health) = get(address, "/health");
    assert!(
        status == 200 && health.contains("\"status\":\"starting\"") && health.contains("phase"),
        "{health}"
    );
    assert_eq!(get(address, "/v1/models").0, 503);
    assert_eq!(get(address, "/info").0, 503);
    let (rest, _) = server.stop();
    assert!(!rest.contains(READY), "{rest}");
}
