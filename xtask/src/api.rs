//! `cargo xtask api`: what each library offers to other crates, one public item a line, with cargo-public-api.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// The libraries, lowest first.
const LIBRARIES: [&str; 7] =
    ["tt-sys", "tt-soft", "tt-ops", "gr00t-host", "reference", "gr00t-model", "gr00t-serve"];

/// The version of cargo-public-api that reads what Rust 1.95 writes.
const TOOL: &str = "0.52.0";

/// Arguments of `api`.
#[derive(Debug, clap::Args)]
pub(crate) struct ApiArgs {
    /// Libraries; all of them unless named
    crates: Vec<String>,
}

/// Prints the listings; derived and blanket impls are left out.
///
/// # Errors
/// If a library is unknown, the tool is absent, or one of the two programs fails.
pub(crate) fn run(args: &ApiArgs) -> Result<()> {
    if let Some(unknown) = args.crates.iter().find(|name| !LIBRARIES.contains(&name.as_str())) {
        bail!("no library {unknown}, there are {}", LIBRARIES.join(", "));
    }
    ensure!(
        workspace::has_cargo("public-api"),
        "cargo-public-api is not installed: cargo install --locked cargo-public-api --version {TOOL}"
    );
    let named: Vec<&str> = args.crates.iter().map(String::as_str).collect();
    for library in if named.is_empty() { &LIBRARIES[..] } else { &named } {
        // The compiler's description of a library is not stable, hence the variable; a folder of its own keeps the variable
        // from rebuilding what other commands built.
        let target = workspace::root().join("target/api");
        succeed(
            command(&["rustdoc", "--quiet", "--locked", "--lib", "--package", library, "--target-dir"])
                .arg(&target)
                .args(["--", "-Z", "unstable-options", "--output-format", "json"])
                .env("RUSTC_BOOTSTRAP", "1"),
        )?;
        succeed(command(&["public-api", "-sss", "--rustdoc-json"]).arg(json(&target, library)))?;
    }
    Ok(())
}

/// Where rustdoc describes `library`.
fn json(target: &Path, library: &str) -> PathBuf {
    target.join("doc").join(library.replace('-', "_")).with_extension("json")
}

/// Cargo at the workspace root.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(workspace::cargo());
    command.args(args).current_dir(workspace::root());
    command
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("cargo")?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_of_the_workspace_is_listed() {
        for library in LIBRARIES {
            assert!(workspace::root().join(library).join("src/lib.rs").is_file(), "{library}");
        }
        // `benches` holds cases for this command, `xtask` is a program.
        let manifest = std::fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
        let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
        assert_eq!(members.matches('"').count() / 2, LIBRARIES.len() + 2);
    }

    #[test]
    fn a_library_that_is_not_there_is_refused() {
        let error = run(&ApiArgs { crates: vec!["nothing".into()] }).unwrap_err().to_string();
        assert!(error.starts_with("no library nothing, there are tt-sys"), "{error}");
    }
}
