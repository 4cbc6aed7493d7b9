//! `cargo xtask ci`: `test`, and what needs more than the checkout: `cargo deny` and the golden results.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::device::DeviceArgs;
use crate::say::say;
use crate::step::Steps;
use crate::verify::{self, VerifyArgs};
use crate::{test, workspace};

/// Runs all steps; what this machine lacks is named.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::default();
    let mut left_out: Vec<String> = test::steps_of_test(&mut steps)?.into_iter().collect();
    if workspace::has_cargo("deny") {
        steps.run(
            "deny",
            Command::new(workspace::cargo())
                .args(["deny", "--offline", "check", "licenses", "bans", "sources"])
                .current_dir(workspace::root()),
        )?;
    } else {
        left_out.push("not checked: licences, bans and sources (cargo-deny is not installed)".to_string());
    }
    let folders = golden_folders();
    if folders.is_empty() {
        left_out.push(format!("not verified: {} is absent", workspace::golden().display()));
    } else {
        let small = folders.iter().filter(|f| verify::is_small_case(f)).cloned().collect();
        steps.run_here("verify", || verify::run(&VerifyArgs::new(folders)))?;
        let on_device = VerifyArgs::new(small).on_device(DeviceArgs { checked: true, ..Default::default() });
        steps.run_here("verify on the device", || verify::run(&on_device))?;
    }
    say!("all passed\n{}", steps.table());
    for line in left_out {
        say!("{line}");
    }
    Ok(())
}

/// Every folder of NVIDIA's results that lies beside the checkout.
fn golden_folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![workspace::golden()];
    while let Some(dir) = open.pop() {
        if verify::is_judged(&dir) {
            found.push(dir);
        } else if let Ok(entries) = std::fs::read_dir(&dir) {
            open.extend(entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()));
        }
    }
    found.sort();
    found
}
