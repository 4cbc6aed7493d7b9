//! What it refuses, in one line and with which code: 1 for what is wrong with what it was told, 2 for flags that do not exist.

use gr00t_host::embodiment::{DataConfig, synthetic_metadata};

use crate::server::{MINI, output, refusal};

fn with<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&MINI[..], flags].concat()
}

/// The one line of `said` that is the error.
fn error(said: &str) -> &str {
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    let [line] = lines[..] else { panic!("not one error line: {said}") };
    line
}

#[test]
fn check_says_what_was_read_and_serves_nothing() {
    let (_, log) = output(&with(&["--check"]), &[]);
    assert!(log.contains("all finite") && !log.contains("HTTP on"), "{log}");
    let (_, log) = output(&MINI, &[("GR00T_CHECK", "1")]);
    assert!(log.contains("all finite"), "{log}");
}

#[test]
fn the_config_is_printed_as_it_was_understood_without_the_token() {
    let environment = [("GR00T_QUEUE", "3"), ("GR00T_API_TOKEN", "s3cret"), ("GR00T_POLICY", "bf16")];
    let (config, _) =
        output(&with(&["--print-config", "--policy", "mixed", "--zmq-port", "5555"]), &environment);
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!((&config["queue"], &config["policy"]), (&3.into(), &"mixed".into()));
    assert_eq!((&config["zmq_port"], &config["config"]), (&5555.into(), &"mini".into()));
    assert!(!config.to_string().contains("s3cret"));
}

#[test]
fn what_it_was_told_wrong_is_one_line_and_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_str().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--weights", "/nonexistent/weights"], "/nonexistent/weights"),
        (&["--weights", empty], empty),
        (&["--weights", "synthetic", "--config", "huge"], "huge"),
        (&["--weights", "synthetic", "--config", "mini", "--data-config", "so1000"], "so1000"),
        (
            &["--weights", "synthetic", "--config", "mini", "--metadata", "/nonexistent.json"],
            "/nonexistent.json",
        ),
        (&["--weights", "synthetic", "--config", "mini", "--tokenizer", empty], empty),
    ];
    for (flags, named) in cases {
        let (said, code) = refusal(&[flags, &["--check"]].concat(), &[]);
        assert_eq!(code, Some(1), "{flags:?}: {said}");
        assert!(error(&said).contains(named), "{flags:?}: {said}");
    }
}

/// `--check` refuses what a start would.
#[test]
fn check_refuses_what_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let metadata = |width: u32| {
        let config = DataConfig::builtin("so100").unwrap();
        let mut metadata = synthetic_metadata(&config).unwrap();
        for known in metadata.embodiments.values_mut() {
            known.modalities.video.values_mut().for_each(|camera| camera.resolution = [width, width]);
        }
        let file = folder.path().join(format!("{width}.json"));
        std::fs::write(&file, serde_json::to_vec(&metadata).unwrap()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (none, huge) = (metadata(0), metadata(1_000_000));
    let mut cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["--threads", "100000"], "100000"),
        (vec!["--port", "4711", "--zmq-port", "4711"], "--zmq-port: 4711 is the port of --port already"),
        (vec!["--data-config", "so100", "--metadata", &none], "0x0"),
        (vec!["--data-config", "so100", "--metadata", &huge], "1000000x1000000"),
    ];
    if !cfg!(feature = "metal") {
        cases.push((vec!["--device", "metal"], "--features metal"));
    }
    for (flags, named) in cases {
        let (said, code) = refusal(&with(&[&flags[..], &["--check"]].concat()), &[]);
        assert_eq!(code, Some(1), "{flags:?}: {said}");
        assert!(error(&said).contains(named), "{flags:?}: {said}");
    }
    let (said, code) = refusal(&with(&["--check"]), &[("GR00T_SOFT_ISA", "foo")]);
    assert!(error(&said).contains("foo") && code == Some(1), "{said}");
}

#[test]
fn flags_that_do_not_exist_are_code_2() {
    let (said, code) = refusal(&["--policies", "bf16"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--policies"), "{said}");
}

#[test]
fn misspelt_variables_are_refused_before_anything_is_opened() {
    let (said, code) = refusal(&["--check"], &[("GR00T_POLICI", "bf16"), ("GR00T_CLIP_ACTIONS", "maybe")]);
    let line = error(&said);
    assert!(line.contains("GR00T_POLICI: no such option") && line.contains("GR00T_CLIP_ACTIONS: "), "{said}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_port_in_use_is_said_in_the_words_that_launchers_quote() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flag in ["--port", "--zmq-port", "--websocket-port"] {
        let free = if flag == "--port" { vec![] } else { vec!["--port", "0"] };
        let (said, code) = refusal(&with(&[&[flag, &port][..], &free].concat()), &[]);
        assert!(error(&said).contains("Address already in use") && said.contains(&port), "{flag}: {said}");
        assert_eq!(code, Some(1));
    }
}

#[test]
fn a_fidelity_that_is_not_reached_fails_the_boot() {
    let (said, code) = refusal(&with(&["--port", "0", "--warmup-pcc-min", "1"]), &[]);
    assert!(error(&said).contains("warm-up fidelity: PCC 0.99"), "{said}");
    assert!(!said.contains("Application startup complete"));
    assert_eq!(code, Some(1));
}

#[test]
fn a_card_without_tt_metal_is_explained() {
    let (said, _) = refusal(&with(&["--port", "0", "--device", "metal"]), &[]);
    assert!(error(&said).contains("tt-metal"), "{said}");
}
