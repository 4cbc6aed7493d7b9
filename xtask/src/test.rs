//! `cargo xtask test`: what must pass before a change is handed in.

use std::process::Command;

use anyhow::Result;

use crate::device::Kind;
use crate::say::say;
use crate::skipped::Filter;
use crate::step::Steps;
use crate::workspace;

/// Arguments of `test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TestArgs {
    /// soft: everything that needs no card; metal: what needs one or its simulator, and nothing else
    #[arg(long, value_enum, default_value_t)]
    device: Kind,
}

/// Runs all steps and prints their times.
pub(crate) fn run(args: &TestArgs) -> Result<()> {
    let mut steps = Steps::default();
    let skipped = match args.device {
        Kind::Soft => steps_of_test(&mut steps)?,
        Kind::Metal => {
            steps_on_metal(&mut steps)?;
            None
        }
    };
    say!("all passed\n{}", steps.table());
    if let Some(skipped) = skipped {
        say!("{skipped}");
    }
    Ok(())
}

/// Formatting, lints, tests (documentation tests included) and documentation; what tests skipped, if they did.
pub(crate) fn steps_of_test(steps: &mut Steps) -> Result<Option<String>> {
    steps.run("format", cargo().args(["fmt", "--all", "--check"]))?;
    steps.run(
        "lints",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    )?;
    let mut filter = Filter::default();
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--locked", "--", "--show-output"]);
    steps.run_filtered("tests", &mut tests, |line| filter.shows(line))?;
    steps.run(
        "docs",
        cargo().args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    Ok(filter.summary())
}

/// The C++ layer's own tests, the bridge's, the full-size ops planned, and the op suite, which shows its table. What the tests say is
/// shown, since without a device they pass and say that they were skipped.
fn steps_on_metal(steps: &mut Steps) -> Result<()> {
    let test = |package: &str, feature: &str, test: &str| {
        let mut command = cargo();
        command.args(["test", "--locked", "-p", package, "--features", feature, "--test", test]);
        command.args(["--", "--nocapture", "--test-threads", "1"]);
        command
    };
    steps.run("C++ layer", &mut test("tt-sys", "cpp-tests", "cpp"))?;
    steps.run("bridge", &mut test("tt-sys", "metal", "device"))?;
    steps.run("full-size ops", &mut test("tt-ops", "metal", "metal_full_size"))?;
    steps.run("op suite", &mut test("tt-ops", "metal", "metal"))
}

/// Cargo at the workspace root.
fn cargo() -> Command {
    let mut command = Command::new(workspace::cargo());
    command.current_dir(workspace::root());
    command
}
