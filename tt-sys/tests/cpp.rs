//! The C++ layer's own tests, each in a process of its own. Built with the feature `cpp-tests`; where there is no device, which
//! tt-metal wants even for host tensors, this says that it was skipped.
#![cfg(feature = "cpp-tests")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::Command;

const CHILD: &str = "TT_SYS_CPP_TEST";

#[test]
fn the_layers_own_tests_pass() {
    if let Some(name) = std::env::var_os(CHILD) {
        tt_sys::cpp_tests::run(&name.to_string_lossy()).unwrap();
        return;
    }
    let names = tt_sys::cpp_tests::names().unwrap();
    assert!(names.len() > 1, "{names:?}");
    if std::env::var_os("TT_METAL_SIMULATOR").is_none() && !std::path::Path::new("/dev/tenstorrent").exists()
    {
        println!("skipped: no card, and TT_METAL_SIMULATOR is not set");
        return;
    }
    let mut failures = Vec::new();
    for name in &names {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["the_layers_own_tests_pass", "--exact", "--nocapture"])
            .env(CHILD, name)
            .output()
            .unwrap();
        println!("{name}: {}", output.status);
        if !output.status.success() {
            failures.push(format!("{name}:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_test_that_is_not_there_is_an_error() {
    let error = tt_sys::cpp_tests::run("none such").unwrap_err().to_string();
    assert!(error.contains("no test none such"), "{error}");
}
