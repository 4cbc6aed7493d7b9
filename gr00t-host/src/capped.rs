//! Whole files with a bound on their size, whatever the file system says of it: devices and pipes report a length of 0
//! and go on for ever, and a file can grow while it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, Result};

/// The bytes of the file at `path`, at most `limit` of them.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::Parse`] if it is longer; no more than `limit` bytes are held.
///
/// ```
/// let error = gr00t_host::read_capped("/dev/zero", 1000).unwrap_err();
/// assert_eq!(error.to_string(), "/dev/zero: more than 1000 bytes, the most that is read");
/// ```
pub fn read_capped(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > limit {
        return Err(Error::Parse {
            path: path.to_path_buf(),
            what: format!("more than {limit} bytes, the most that is read"),
        });
    }
    Ok(bytes)
}
