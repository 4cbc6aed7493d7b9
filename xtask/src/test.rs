//! `cargo xtask test`: what must pass before a change is handed in.

use std::process::Command;

use anyhow::Result;

use crate::say::say;
use crate::step::Steps;
use crate::workspace;

/// Runs all steps and prints their times.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps_of_test(&mut steps)?;
    say!("all passed\n{}", steps.table());
    Ok(())
}

/// Formatting, lints, tests (documentation tests included) and documentation.
pub(crate) fn steps_of_test(steps: &mut Steps) -> Result<()> {
    steps.run("format", cargo().args(["fmt", "--all", "--check"]))?;
    steps.run(
        "lints",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    )?;
    steps.run("tests", cargo().args(["test", "--workspace", "--locked"]))?;
    steps.run(
        "docs",
        cargo().args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Cargo at the workspace root.
fn cargo() -> Command {
    let mut command = Command::new(workspace::cargo());
    command.current_dir(workspace::root());
    command
}
