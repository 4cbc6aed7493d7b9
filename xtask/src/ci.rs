//! `cargo xtask ci`: `test`, and what needs more than the checkout: `cargo deny` and the golden results.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::step::Steps;
use crate::{test, workspace};

/// Runs all steps; what this machine lacks is named.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::default();
    test::steps_of_test(&mut steps)?;
    let mut left_out = Vec::new();
    if has_cargo_deny() {
        steps.run(
            "deny",
            Command::new(workspace::cargo())
                .args(["deny", "--offline", "check", "licenses", "bans", "sources"])
                .current_dir(workspace::root()),
        )?;
    } else {
        left_out.push("not checked: licences, bans and sources (cargo-deny is not installed)".to_string());
    }
    println!("all passed\n{}", steps.table());
    for line in left_out {
        println!("{line}");
    }
    Ok(())
}

fn has_cargo_deny() -> bool {
    Command::new(workspace::cargo())
        .args(["deny", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}
