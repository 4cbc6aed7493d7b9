//! Files of a hub cache against their names: a large file's blob is called by the SHA-256 of its content.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Bytes that are read and hashed at a time.
const BUFFER: usize = 1 << 20;
/// Hexadecimal digits of a SHA-256.
const SHA256_DIGITS: usize = 64;

/// A file of a snapshot whose content is known by its hash.
#[derive(Debug)]
pub(super) struct HashedFile {
    /// Its place in the snapshot.
    path: PathBuf,
    pub(super) sha256: String,
    /// Its length.
    pub(super) bytes: u64,
}

/// The files in `dir` that are links to blobs called by a SHA-256; none outside a hub cache.
pub(super) fn hashed_files(dir: &Path) -> Vec<HashedFile> {
    let paths = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.is_symlink()).filter_map(hashed_file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The file, if it is a link to such a blob.
pub(super) fn hashed_file(path: PathBuf) -> Option<HashedFile> {
    let blob = fs::canonicalize(&path).ok()?;
    let name = blob.file_name()?.to_str()?;
    let in_blobs = blob.parent()?.file_name()? == "blobs";
    if !in_blobs || !is_sha256(name) {
        return None;
    }
    let bytes = fs::metadata(&blob).ok()?.len();
    Some(HashedFile { path, sha256: name.to_lowercase(), bytes })
}

/// Whether `text` is a SHA-256 in hexadecimal.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == SHA256_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Hashes `files` in parallel; `progress` is called with the bytes done.
///
/// # Errors
/// [`Error::Io`], or [`Error::Checkpoint`] that lists every file of another content.
pub(super) fn verify_hashes(dir: &Path, files: &[HashedFile], progress: &(dyn Fn(u64) + Sync)) -> Result<()> {
    let done = AtomicU64::new(0);
    let found = files
        .par_iter()
        .map(|file| {
            let mut hash = Sha256::new();
            let io = |e| Error::io(&file.path, e);
            let mut input = File::open(&file.path).map_err(io)?;
            let mut buffer = vec![0; BUFFER];
            loop {
                let read = input.read(&mut buffer).map_err(io)?;
                if read == 0 {
                    return Ok(hex(&hash.finalize()));
                }
                hash.update(&buffer[..read]);
                progress(done.fetch_add(read as u64, Ordering::Relaxed) + read as u64);
            }
        })
        .collect::<Result<Vec<String>>>()?;
    let wrong: Vec<String> = files
        .iter()
        .zip(found)
        .filter(|(file, found)| file.sha256 != *found)
        .map(|(file, found)| {
            let name = file.path.file_name().unwrap_or_default().display();
            format!("{name} has SHA-256 {found}, wanted {}: remove its blob and fetch it again", file.sha256)
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Error::checkpoint(dir, wrong.join("; "))) }
}

/// `bytes` in lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
