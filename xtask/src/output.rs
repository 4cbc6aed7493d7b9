//! Result files that appear whole or not at all, and are known to be writable before the work begins.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Refuses a `path` that cannot be written, without changing it.
///
/// # Errors
/// If it is a folder, may not be written, or its folder is missing or may not be written.
pub(crate) fn check(path: &Path) -> Result<()> {
    let shown = || path.display().to_string();
    if path.is_dir() {
        bail!("{}: is a folder, wanted a file to write", path.display());
    }
    if path.is_file() {
        OpenOptions::new().write(true).open(path).with_context(shown)?;
    } else if !path.exists() {
        let partial = partial(path);
        File::create(&partial).with_context(shown)?;
        fs::remove_file(&partial).with_context(shown)?;
    }
    Ok(())
}

/// Writes `bytes` to `path`; a file is replaced only by a whole one.
///
/// # Errors
/// If it cannot be written; an earlier file is then as it was.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let shown = || path.display().to_string();
    if path.exists() && !path.is_file() {
        // A device or pipe has no half content to protect anyone from.
        return fs::write(path, bytes).with_context(shown);
    }
    // A link stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let partial = partial(&path);
    let written = File::create(&partial)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, &path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written.with_context(shown)
}

/// A name beside `path`, on the same file system.
fn partial(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_and_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        check(&path).unwrap();
        assert!(!path.exists());
        write(&path, b"one").unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check(dir.path()).unwrap_err().to_string().contains("is a folder"));
        let error = check(&dir.path().join("no/out.json")).unwrap_err();
        assert!(format!("{error:#}").contains("no/out.json: No such file"), "{error:#}");
    }

    #[test]
    fn a_full_device_is_an_error() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            println!("skipped: {} is absent", full.display());
            return;
        }
        check(full).unwrap();
        assert!(write(full, b"x").is_err());
    }
}
