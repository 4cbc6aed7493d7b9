//! Flags over environment over defaults.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ffi::OsString;

use clap::CommandFactory;
use gr00t_host::checkpoint::GR00T_N1_5_3B;
use gr00t_model::{DtypePolicy, TraceLayout};
use gr00t_serve::options::{Cli, Environment, KNOWN_VARIABLES, ServeOptions, environment, parse};

fn options(arguments: &[&str], environment: &[(&str, &str)]) -> Result<ServeOptions, String> {
    let arguments = std::iter::once("gr00t-serve").chain(arguments.iter().copied()).map(OsString::from);
    let environment: Environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    parse(arguments, &environment).map(|cli| cli.serve).map_err(|error| error.to_string())
}

#[test]
fn without_anything_it_is_the_python_servers_policy_on_loopback() {
    let got = options(&[], &[]).unwrap();
    assert_eq!((got.host.to_string().as_str(), got.port), ("127.0.0.1", 8000));
    assert_eq!(got.weights_spec().unwrap().to_string(), GR00T_N1_5_3B);
    assert_eq!(got.data_config().unwrap().name, "fourier_gr1_arms_only");
    assert_eq!((got.policy, got.trace_layout), (DtypePolicy::MixedDit, TraceLayout::PerStage));
    assert_eq!((got.warmup_runs, got.warmup_pcc_min, got.seed), (3, 0.999, 0));
}

#[test]
fn the_launchers_environment_is_understood_and_flags_win() {
    let environment = [
        ("HF_MODEL", "nvidia/GR00T-N1.5-3B"),
        ("TT_WEIGHTS_REVISION", "main"),
        ("GR00T_VERSION", "n15"),
        ("GR00T_EMBODIMENT", "gr1"),
        ("GR00T_LAYOUT", "gr1"),
        ("GR00T_POLICY", "bf16"),
        ("GR00T_TRACE_LAYOUT", "two"),
        ("GR00T_TT_CACHE", "/weight-cache/gr00t-tt"),
        ("GR00T_PROJECT_ROOT", "/nonexistent"),
        ("GR00T_GOLDEN_ROOT", "/nonexistent"),
        ("GR00T_WARMUP_RUNS", "5"),
        ("GR00T_TORCH_THREADS", "1"),
        ("GR00T_THREADS", "2"),
        ("TT_MESH_SHAPE", "1x1"),
        ("TT_DEVICE_ID", "0"),
        ("TT_METAL_VISIBLE_DEVICES", "0"),
        ("GR00T_DOWNLOAD", ""),
    ];
    let got = options(&["--policy", "mixed"], &environment).unwrap();
    assert_eq!(got.weights_spec().unwrap().to_string(), "nvidia/GR00T-N1.5-3B@main");
    assert_eq!((got.policy, got.trace_layout), (DtypePolicy::Mixed, TraceLayout::Two));
    assert_eq!((got.warmup_runs, got.threads, got.download), (5, Some(2), false));
    assert_eq!(got.notes.len(), 2, "{:?}", got.notes);
    let got = options(&["--weights", "synthetic"], &environment).unwrap();
    assert_eq!(got.weights_spec().unwrap().to_string(), "synthetic:0");
    let got = options(&[], &[("HF_MODEL", "a/b"), ("GR00T_WEIGHTS_DIR", "/weights")]).unwrap();
    assert_eq!(got.weights_spec().unwrap().to_string(), "/weights");
}

#[test]
fn a_token_that_is_no_text_or_blank_does_not_open_the_server() {
    use std::os::unix::ffi::OsStringExt;

    for blank in ["", " \n"] {
        let error = options(&[], &[("GR00T_API_TOKEN", blank)]).unwrap_err();
        assert!(error.starts_with("GR00T_API_TOKEN: token is empty"), "{error}");
    }
    let bytes = |text: &[u8]| OsString::from_vec(text.to_vec());
    for name in [&b"GR00T_API_TOKEN"[..], b"GR00T_API_TOKEM", b"TT_DEVICE_ID", b"GR00T_\xff"] {
        let error = environment([(bytes(name), bytes(b"t\xffk"))]).unwrap_err().to_string();
        assert!(error.ends_with(": is not UTF-8"), "{error}");
    }
    let set = environment([(bytes(b"OTHER"), bytes(b"\xff")), (bytes(b"GR00T_PORT"), bytes(b"1"))]).unwrap();
    assert_eq!(set.into_iter().collect::<Vec<_>>(), [("GR00T_PORT".to_owned(), "1".to_owned())]);
}

#[test]
fn counts_are_not_0() {
    for flag in ["--threads", "--denoising-steps"] {
        let error = options(&[flag, "0"], &[]).unwrap_err();
        assert!(error.contains("wanted a whole number from 1"), "{error}");
    }
}

#[test]
fn booleans_are_what_people_write_and_nothing_else() {
    for (text, wanted) in
        [("1", true), ("TRUE", true), ("on", true), ("0", false), ("false", false), ("", false)]
    {
        assert_eq!(options(&[], &[("GR00T_CLIP_ACTIONS", text)]).unwrap().clip_actions, wanted, "{text:?}");
        let protocols = options(&[], &[("GR00T_ALLOW_KILL", text)]).unwrap().protocols;
        assert_eq!(protocols.allow_kill, wanted, "{text:?}");
    }
    for text in ["2", "maybe", "t", "-1"] {
        let error = options(&[], &[("GR00T_CLIP_ACTIONS", text)]).unwrap_err();
        assert!(error.starts_with("GR00T_CLIP_ACTIONS: "), "{error}");
    }
    assert!(options(&["--clip-actions"], &[("GR00T_CLIP_ACTIONS", "0")]).unwrap().clip_actions);
    assert!(!options(&["--clip-actions=false"], &[("GR00T_CLIP_ACTIONS", "1")]).unwrap().clip_actions);
}

#[test]
fn every_flag_has_a_heading_and_a_variable() {
    let command = Cli::command();
    for flag in command.get_arguments() {
        assert!(flag.get_help_heading().is_some(), "{} has no help_heading", flag.get_id());
        let name = flag.get_long().unwrap();
        let known = KNOWN_VARIABLES.iter().any(|(_, known)| *known == name);
        assert_eq!(known, name != "print-config", "{name}");
    }
}

#[test]
fn an_origin_that_no_page_has_is_refused() {
    let got = options(&["--allow-origin", "http://robot-pc:8000,https://lab"], &[]).unwrap();
    assert_eq!(got.allow_origin, ["http://robot-pc:8000", "https://lab"].map(|text| text.parse().unwrap()));
    assert!(options(&["--allow-origin", "robot-pc:8000"], &[]).unwrap_err().contains("http://"));
    let error = options(&[], &[("GR00T_ALLOW_ORIGIN", "http://robot-pc:8000,lab")]).unwrap_err();
    assert!(error.starts_with("GR00T_ALLOW_ORIGIN: ") && error.contains("lab"), "{error}");
}

#[test]
fn everything_wrong_with_the_environment_is_said_at_once_by_variable() {
    let environment = [
        ("GR00T_POLICI", "bf16"),
        ("GR00T_POLICY", "fp4"),
        ("GR00T_VERSION", "n16"),
        ("TT_MESH_SHAPE", "1x2"),
        ("GR00T_WARMUP_PCC_MIN", "NaN"),
        ("GR00T_LAYOUT", "so100"),
        ("GR00T_API_TOKEN", "two words"),
    ];
    let error = options(&[], &environment).unwrap_err();
    for (name, _) in environment {
        assert!(error.contains(&format!("{name}: ")), "{name} is not in {error}");
    }
}

#[test]
fn an_embodiment_finds_its_data_config_and_must_fit_the_one_given() {
    let name = |arguments: &[&str]| options(arguments, &[]).unwrap().data_config().map(|config| config.name);
    assert_eq!(name(&["--embodiment", "oxe_droid"]).unwrap(), "oxe_droid");
    assert_eq!(name(&["--data-config", "so100", "--embodiment", "new_embodiment"]).unwrap(), "so100");
    assert!(name(&["--data-config", "so100", "--embodiment", "gr1"]).is_err());
    assert!(name(&["--embodiment", "toaster"]).is_err());
}

#[test]
fn the_token_comes_from_variable_or_file_and_is_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "from-file\n").unwrap();
    let environment = [("GR00T_API_TOKEN", "from-variable")];
    let got = options(&[], &environment).unwrap();
    assert!(got.api_token.as_ref().unwrap().matches(b"from-variable"));
    let printed = format!("{got:?} {}", serde_json::to_string(&got).unwrap());
    assert!(!printed.contains("from-variable"));
    let got = options(&["--api-token-file", file.to_str().unwrap()], &environment).unwrap();
    assert!(got.api_token.unwrap().matches(b"from-file"));
    assert!(options(&["--api-token-file", "/nonexistent"], &[]).is_err());
}
