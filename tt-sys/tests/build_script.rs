//! How the build script looks for tt-metal, and what it says where there is none.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../build/locate.rs"]
mod locate;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use locate::{Installation, Version};

fn look(variables: &[(&str, &str)]) -> Result<Installation, String> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    locate::installation(|name| variables.get(name).map(ToString::to_string))
}

fn message(variables: &[(&str, &str)]) -> String {
    look(variables).err().unwrap()
}

/// Empty files that look like an installation below `dir`.
fn installation(dir: &Path, library: &str) {
    for file in ["include/ttnn/operations/trace.hpp", "lib/_ttnncpp.so", library] {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

fn found_in(dir: &Path, more: &[(&str, &str)]) -> Result<Installation, String> {
    let (includes, libraries) = (dir.join("include"), dir.join("lib"));
    let explicit = [
        ("TT_METAL_INCLUDE_DIR", includes.to_str().unwrap()),
        ("TT_METAL_LIB_DIR", libraries.to_str().unwrap()),
    ];
    look(&[&explicit[..], more].concat())
}

#[test]
fn explicit_directories_come_first_and_libraries_say_their_version() {
    let dir = tempfile::tempdir().unwrap();
    installation(dir.path(), "lib/libtt-umd.so.0.73.1");
    let found = found_in(dir.path(), &[("TT_METAL_HOME", "/nowhere")]).unwrap();
    let Installation::Directories { includes, version, .. } = found else {
        panic!("a package was looked for")
    };
    assert_eq!((includes.len(), version), (1, Version([0, 73, 1])));
}

#[test]
fn versions_with_another_api_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    installation(dir.path(), "lib/libtt-umd.so.0.81.1");
    let error = found_in(dir.path(), &[]).err().unwrap();
    assert_eq!(error, "tt-metal 0.81.1 was found, wanted 0.73.0 or later, before 0.79.0");
    let error = found_in(dir.path(), &[("TT_METAL_VERSION", "new")]).err().unwrap();
    assert!(error.contains("wanted like 0.73.1"), "{error}");
}

#[test]
fn half_an_installation_is_named() {
    assert!(message(&[("TT_METAL_LIB_DIR", "/lib")]).contains("only one is set"));
    let both = [("TT_METAL_INCLUDE_DIR", "/nowhere:/no"), ("TT_METAL_LIB_DIR", "/nowhere")];
    assert_eq!(message(&both), "tt-metal's header ttnn/operations/trace.hpp is in none of /nowhere, /no");
    assert!(message(&[("TT_METAL_HOME", "/nowhere")]).contains("build tt-metal there first"));
}

#[test]
fn without_variables_the_package_is_looked_for() {
    assert!(matches!(look(&[]).unwrap(), Installation::Package));
    assert!(matches!(look(&[("TT_METAL_HOME", "")]).unwrap(), Installation::Package));
}

#[test]
fn a_build_without_tt_metal_fails_with_one_sentence() {
    // A CMake that finds nothing, whatever is installed.
    let Some(text) = what_a_failing_build_says(&[("CMAKE", "false")]) else { return };
    assert!(text.contains(&locate::not_found("which CMake does not know")), "{text}");
}

#[test]
fn a_package_with_another_api_is_refused_before_anything_is_compiled() {
    if Command::new("cmake").arg("--version").output().is_err() {
        println!("skipped: there is no cmake");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("TT-NNConfig.cmake"), "").unwrap();
    let version = "set(PACKAGE_VERSION 0.81.1)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n";
    fs::write(dir.path().join("TT-NNConfigVersion.cmake"), version).unwrap();
    let place = ("CMAKE_PREFIX_PATH", dir.path().to_str().unwrap());
    let Some(text) = what_a_failing_build_says(&[place]) else { return };
    assert!(text.contains("tt-metal 0.81.1 was found, wanted 0.73.0 or later, before 0.79.0"), "{text}");
}

/// Nothing where the crates for such a build are not there.
fn what_a_failing_build_says(variables: &[(&str, &str)]) -> Option<String> {
    let mut cargo = Command::new(env!("CARGO"));
    for variable in locate::VARIABLES {
        cargo.env_remove(variable);
    }
    cargo
        .args(["build", "--offline", "--locked", "-p", "tt-sys", "--features", "metal"])
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-tt-metal"))
        .envs(variables.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.contains("--offline was specified") {
        println!("skipped: the crates of the feature `metal` were never downloaded");
        return None;
    }
    assert!(!output.status.success());
    Some(text)
}
