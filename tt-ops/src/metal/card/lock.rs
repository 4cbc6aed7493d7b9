//! One process per card: a lock file that says who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use crate::error::{Result, TtError};

/// Held as long as the card is open; the system gives it back however the process ends.
#[derive(Debug)]
pub(super) struct DeviceLock {
    _file: File,
}

impl DeviceLock {
    /// Takes the lock of card `device_id`.
    ///
    /// # Errors
    /// Another process that holds it, with its pid; a temporary folder that cannot be written.
    pub(super) fn take(device_id: usize) -> Result<Self> {
        let path = path(device_id);
        let error = |what: String| TtError::Device { device: "metal", what };
        let io = |e: std::io::Error| error(format!("lock of card {device_id}, {}: {e}", path.display()));
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The pid is only for the message.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                return Err(error(format!(
                    "card {device_id} is held by process {holder} ({})",
                    path.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(io(e)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// The simulator is no card: it is each process's own.
fn path(device_id: usize) -> PathBuf {
    let simulated = std::env::var_os("TT_METAL_SIMULATOR").is_some()
        || std::env::var_os("TT_METAL_MOCK_CLUSTER_DESC_PATH").is_some();
    let name = if simulated {
        format!("gr00t-tt-simulator-{}.lock", std::process::id())
    } else {
        format!("gr00t-tt-card-{device_id}.lock")
    };
    std::env::temp_dir().join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_come_is_told_who_holds_the_card() {
        const CARD: usize = 4_000_000;
        let held = DeviceLock::take(CARD).unwrap();
        let error = DeviceLock::take(CARD).unwrap_err().to_string();
        assert!(error.contains(&format!("held by process {}", std::process::id())), "{error}");
        drop(held);
        drop(DeviceLock::take(CARD).unwrap());
        std::fs::remove_file(path(CARD)).unwrap();
    }
}
