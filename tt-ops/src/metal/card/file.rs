//! Files by which weights pass between the host and tt-metal, which reads and writes `.tensorbin` files alone.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, TtError};

/// A file in the temporary folder that is gone when this is dropped.
#[derive(Debug)]
pub(super) struct PassingFile {
    op: &'static str,
    path: String,
}

impl PassingFile {
    /// A name of its own; nothing is written yet.
    pub(super) fn new(op: &'static str) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gr00t-tt-{}-{count}.tensorbin", std::process::id()));
        match path.into_os_string().into_string() {
            Ok(path) => Ok(Self { op, path }),
            Err(_) => Err(TtError::memory(op, "has a temporary folder that is not text")),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        File::create_new(&self.path).and_then(|mut file| file.write_all(bytes)).map_err(|e| self.error(&e))
    }

    pub(super) fn read(&self) -> Result<Vec<u8>> {
        std::fs::read(&self.path).map_err(|e| self.error(&e))
    }

    fn error(&self, error: &std::io::Error) -> TtError {
        TtError::memory(self.op, format!("file {}: {error}", self.path))
    }
}

impl Drop for PassingFile {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = std::fs::remove_file(&self.path);
    }
}
