//! The safetensors files of a checkpoint's folder, as files: names, sizes, and hashes where those are known without reading.

use std::fs;
use std::path::{Path, PathBuf};

use super::integrity::hashed_file;
use crate::{Error, Result};

/// A safetensors file in a checkpoint's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeightFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content in lower case. Known in a hub cache, which keeps large files under their hashes.
    pub sha256: Option<String>,
}

/// Those of `dir`, sorted by path.
pub(super) fn weight_files(dir: &Path) -> Result<Vec<WeightFile>> {
    let entries = fs::read_dir(dir).map_err(|e| Error::io(dir, e))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|e| Error::io(dir, e))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    let file = |path: PathBuf| {
        let bytes = fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len();
        let sha256 = hashed_file(path.clone()).map(|file| file.sha256);
        Ok(WeightFile { path, bytes, sha256 })
    };
    paths.into_iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test's unwrap is its assertion")]

    use super::*;

    #[test]
    fn files_of_the_hubs_cache_have_their_hash() {
        let folder = tempfile::tempdir().unwrap();
        let (blobs, snapshot) = (folder.path().join("blobs"), folder.path().join("snapshot"));
        fs::create_dir_all(&blobs).unwrap();
        fs::create_dir_all(&snapshot).unwrap();
        let hash = "0f".repeat(32);
        fs::write(blobs.join(&hash), b"abc").unwrap();
        let linked = snapshot.join("b.safetensors");
        std::os::unix::fs::symlink(blobs.join(&hash), &linked).unwrap();
        let plain = snapshot.join("a.safetensors");
        fs::write(&plain, b"ab").unwrap();
        fs::write(snapshot.join("config.json"), b"{}").unwrap();
        let wanted = [
            WeightFile { path: plain, bytes: 2, sha256: None },
            WeightFile { path: linked, bytes: 3, sha256: Some(hash) },
        ];
        assert_eq!(weight_files(&snapshot).unwrap(), wanted);
    }
}
