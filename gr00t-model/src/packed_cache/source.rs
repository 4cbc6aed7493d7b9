//! What identifies a checkpoint's weights without reading them all.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::UNIX_EPOCH;

use gr00t_host::checkpoint::Checkpoint;
use sha2::{Digest, Sha256};

use crate::error::{ModelError, Result};

/// Longest header that a checkpoint's file can have, as safetensors has it.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Bytes before a header: its length.
const LENGTH_BYTES: u64 = 8;

/// Names, sizes, modification times and header hashes of the weight files; the seed of synthetic weights.
pub(super) fn identity(checkpoint: &Checkpoint) -> Result<String> {
    if checkpoint.dir().is_none() {
        return Ok(checkpoint.source().describe());
    }
    let files = checkpoint.weight_files().map_err(|error| ModelError::Cache(error.to_string()))?;
    let described = files.iter().map(|file| {
        describe(&file.path).map_err(|error| ModelError::Cache(format!("{}: {error}", file.path.display())))
    });
    described.collect()
}

fn describe(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut length)?;
    let mut header = Vec::new();
    file.take(u64::from_le_bytes(length).min(MAX_HEADER_BYTES)).read_to_end(&mut header)?;
    let hash = Sha256::digest(&header);
    Ok(format!("{} {} {modified} {hash:02x?}\n", path.display(), metadata.len()))
}
