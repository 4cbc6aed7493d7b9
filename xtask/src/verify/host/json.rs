//! Reads the JSON files of a host folder.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// Parses `path`.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}
