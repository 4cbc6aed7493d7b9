//! One process per card: a lock file that says who holds it.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Result, TtError};

/// Held as long as the card is open; the system gives it back however the process ends. There is no file where the card is
/// simulated, since each process then has its own.
#[derive(Debug)]
pub(super) struct DeviceLock {
    _file: Option<File>,
}

/// Whoever may use the card may lock it.
const MODE: u32 = 0o666;

impl DeviceLock {
    /// Takes the lock of card `device_id`.
    ///
    /// # Errors
    /// Another process that holds it, with its pid; a temporary folder that cannot be written.
    pub(super) fn take(device_id: usize) -> Result<Self> {
        let simulated = ["TT_METAL_SIMULATOR", "TT_METAL_MOCK_CLUSTER_DESC_PATH"];
        if simulated.iter().any(|name| std::env::var_os(name).is_some()) {
            return Ok(Self { _file: None });
        }
        Ok(Self { _file: Some(lock(device_id, &path(device_id))?) })
    }
}

fn lock(device_id: usize, path: &Path) -> Result<File> {
    let error = |what: String| TtError::Device { device: "metal", what };
    let io = |e: std::io::Error| error(format!("lock of card {device_id}, {}: {e}", path.display()));
    let mut file = open(path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The pid is only for the message.
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            return Err(error(format!("card {device_id} is held by process {holder} ({})", path.display())));
        }
        Err(TryLockError::Error(e)) => return Err(io(e)),
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
    writeln!(file, "{}", std::process::id()).map_err(io)?;
    Ok(file)
}

/// Opens the file, making it only where it is missing: Linux refuses to "make" another user's file in a shared folder.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        there => return there,
    }
    let file = options.create(true).truncate(false).mode(MODE).open(path)?;
    // What the process's umask took away; where that fails, other users are told that the file is not theirs.
    let _ = file.set_permissions(Permissions::from_mode(MODE));
    Ok(file)
}

fn path(device_id: usize) -> PathBuf {
    std::env::temp_dir().join(format!("gr00t-tt-card-{device_id}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_come_is_told_who_holds_the_card() {
        const CARD: usize = 4_000_000;
        let path = path(CARD);
        let held = lock(CARD, &path).unwrap();
        let error = lock(CARD, &path).unwrap_err().to_string();
        assert!(error.contains(&format!("held by process {}", std::process::id())), "{error}");
        assert_eq!(held.metadata().unwrap().permissions().mode() & 0o777, MODE);
        drop(held);
        drop(lock(CARD, &path).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
