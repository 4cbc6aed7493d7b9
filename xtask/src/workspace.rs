//! Places of the workspace that commands need.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the root `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where NVIDIA's results lie, beside the checkout, on machines that have them.
pub(crate) fn golden() -> PathBuf {
    root().join("../shared/golden")
}

/// The cargo that runs this command.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Whether cargo has this subcommand, such as `deny`.
pub(crate) fn has_cargo(subcommand: &str) -> bool {
    Command::new(cargo())
        .args([subcommand, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
