//! Reads the JSON files of a host folder.

use std::path::Path;

use anyhow::{Context, Result};
use gr00t_host::read_capped;
use serde::de::DeserializeOwned;

/// Largest file that is read; NVIDIA's results have 1 MB.
const MAX_BYTES: u64 = 256 << 20;

/// Parses `path`.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_capped(path, MAX_BYTES)?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}
