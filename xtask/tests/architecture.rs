//! The workspace is built as `docs/architecture.md` draws it: dependency arrows.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Every arrow that may exist between workspace crates, dev-dependencies aside. `*` is any crate.
const ARROWS: &[(&str, &[&str])] = &[
    ("tt-sys", &[]),
    ("tt-soft", &[]),
    ("tt-ops", &["tt-sys", "tt-soft"]),
    ("gr00t-host", &[]),
    ("gr00t-model", &["tt-ops", "gr00t-host"]),
    ("gr00t-serve", &["gr00t-model", "gr00t-host", "reference"]),
    ("reference", &["gr00t-host"]),
    ("benches", &["*"]),
    ("xtask", &["*"]),
];

#[test]
fn only_the_drawn_arrows_exist() {
    let packages = workspace_packages();
    let problems = undrawn(&packages);
    assert!(problems.is_empty(), "arrows that the design does not draw:\n{}", problems.join("\n"));
}

#[test]
fn every_crate_of_the_design_is_there_and_no_other() {
    let names: Vec<String> = workspace_packages().into_keys().collect();
    let mut drawn: Vec<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    drawn.sort_unstable();
    assert_eq!(names, drawn);
}

#[test]
fn an_undrawn_arrow_is_found() {
    let packages = BTreeMap::from([
        ("reference".to_string(), vec!["gr00t-host".to_string(), "tt-soft".to_string()]),
        ("tt-soft".to_string(), Vec::new()),
        ("gr00t-host".to_string(), Vec::new()),
    ]);
    assert_eq!(undrawn(&packages), ["reference -> tt-soft"]);
}

/// Arrows of `packages` (crate → its dependencies) that [`ARROWS`] lacks.
fn undrawn(packages: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, dependencies) in packages {
        let allowed = ARROWS.iter().find(|(from, _)| from == name).map_or(&[][..], |(_, to)| to);
        for to in dependencies.iter().filter(|d| packages.contains_key(*d)) {
            if !allowed.contains(&"*") && !allowed.contains(&to.as_str()) {
                found.push(format!("{name} -> {to}"));
            }
        }
    }
    found
}

/// Workspace crate → its normal and build dependencies, as cargo sees them.
fn workspace_packages() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().unwrap().to_string();
            let dependencies = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|d| d["kind"] != "dev")
                .map(|d| d["name"].as_str().unwrap().to_string())
                .collect();
            (name, dependencies)
        })
        .collect()
}
