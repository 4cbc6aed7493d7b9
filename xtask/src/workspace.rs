//! Places of the workspace that commands need.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of the root `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// NVIDIA's results, which lie beside the checkout where they are at hand; `None` elsewhere.
pub(crate) fn golden() -> Option<PathBuf> {
    let dir = root().parent()?.join("shared/golden");
    dir.is_dir().then_some(dir)
}

/// The cargo that runs this command.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
