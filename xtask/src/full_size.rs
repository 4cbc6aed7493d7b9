//! One full-size run at a time: two of them do not fit the memory of a small machine.

use std::fs::{File, OpenOptions, TryLockError};

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::expected_tensors;

/// Models with more weights than this run alone.
const RUNS_ALONE_FROM: usize = 500_000_000;

/// Whether a model of this geometry runs alone.
pub(crate) fn is_full_size(config: &ModelConfig) -> bool {
    let weights: usize = expected_tensors(config).iter().map(|t| t.shape.iter().product::<usize>()).sum();
    weights >= RUNS_ALONE_FROM
}

/// Waits until no other process runs a model of this size; the lock ends when the result is dropped. Small models
/// do not wait.
pub(crate) fn alone(config: &ModelConfig) -> Result<Option<File>> {
    if !is_full_size(config) {
        return Ok(None);
    }
    let path = std::env::temp_dir().join("gr00t-tt-full-size.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another full-size run to end ({})", path.display());
            file.lock().with_context(|| path.display().to_string())?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(|| path.display().to_string()),
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_model_does_not_wait() {
        assert!(alone(&ModelConfig::mini()).unwrap().is_none());
    }
}
