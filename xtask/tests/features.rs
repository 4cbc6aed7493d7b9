//! `xtask` and `gr00t-serve` ask for the same features of what both are built from: a checkout compiles it once for both.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Package with version → each set of features that it is built with: build scripts may have their own.
type Packages = BTreeMap<String, BTreeSet<String>>;

#[test]
fn both_programs_are_built_from_the_same_packages() {
    let (developer, server) = (tree("xtask"), tree("gr00t-serve"));
    for known in ["half ", "ndarray ", "tt-soft ", "gr00t-host "] {
        assert!([&developer, &server].iter().all(|tree| tree.keys().any(|name| name.starts_with(known))));
    }
    let problems = different(&developer, &server);
    assert!(
        problems.is_empty(),
        "built twice, by xtask and by gr00t-serve; ask for the union in [workspace.dependencies]:\n{}",
        problems.join("\n")
    );
}

#[test]
fn a_feature_that_one_program_lacks_is_found() {
    let one = packages("a v1.0.0|std\nb v1.0.0|\n\nc v1.0.0|x\nc v1.0.0|x (*)");
    let other = packages("b v1.0.0|std\na v1.0.0|std (*)\nc v1.0.0|x");
    assert_eq!(different(&one, &other), [r#"b v1.0.0: {""} and {"std"}"#]);
}

/// What both have with different features.
fn different(one: &Packages, other: &Packages) -> Vec<String> {
    let both = one.iter().filter_map(|(name, features)| Some((name, features, other.get(name)?)));
    both.filter(|(_, a, b)| a != b).map(|(name, a, b)| format!("{name}: {a:?} and {b:?}")).collect()
}

/// Everything that `package` is built from, for this machine.
fn tree(package: &str) -> Packages {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}|{f}", "--package", package])
        .current_dir(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    packages(&String::from_utf8(output.stdout).unwrap())
}

/// Of the lines `name version|features`.
fn packages(lines: &str) -> Packages {
    let mut packages = Packages::new();
    for (name, features) in lines.lines().filter_map(|line| line.split_once('|')) {
        let features = features.trim_end_matches(" (*)").to_string();
        packages.entry(name.to_string()).or_default().insert(features);
    }
    packages
}
