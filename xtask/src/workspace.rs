//! Places of the workspace that commands need.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
