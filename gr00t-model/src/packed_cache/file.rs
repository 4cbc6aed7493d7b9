//! One file of the cache: magic, length of the payload, checksum of the file's name and the payload, payload.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// First bytes of a file, with the version of this form.
const MAGIC: [u8; 8] = *b"GR00TPK1";
/// Magic, length, checksum.
const HEADER_BYTES: usize = 24;
/// Bytes per element that no packed format exceeds, padding to panels aside.
const MAX_ELEMENT_BYTES: u64 = 8;
/// Elements of padding per side that no packed format exceeds.
const MAX_PADDING: u64 = 256;
/// Sums that the checksum runs side by side, so that it is as fast as memory.
const LANES: usize = 4;
/// Odd multiplier of the checksum (the golden ratio's, as in splitmix64).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Most bytes that a packed `[k, n]` weight can have.
pub(super) fn most_bytes(k: usize, n: usize) -> u64 {
    let padded = |extent: usize| (extent as u64).saturating_add(MAX_PADDING);
    padded(k).saturating_mul(padded(n)).saturating_mul(MAX_ELEMENT_BYTES)
}

/// The payload, `None` if there is no file.
///
/// # Errors
/// A file that cannot be read, has another form, is longer than `most` bytes, or whose checksum is wrong.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)?;
    let word = |at: usize| {
        header.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let (length, sum) = (word(8), word(16));
    if !header.starts_with(&MAGIC) {
        return Err(damaged("another form"));
    }
    if length > most || file.metadata()?.len() != length.saturating_add(HEADER_BYTES as u64) {
        return Err(damaged("another length"));
    }
    let mut payload = vec![0; usize::try_from(length).map_err(|_| damaged("another length"))?];
    file.read_exact(&mut payload)?;
    if checksum(path, &payload) == sum { Ok(Some(payload)) } else { Err(damaged("another checksum")) }
}

/// Writes `payload` so that the file appears complete or not at all. It is not flushed to the disk: what a power cut leaves is found by
/// its checksum.
pub(super) fn write(path: &Path, payload: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unique = format!(".{}-{}.part", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let part = folder.join(unique);
    let written = File::create_new(&part)
        .and_then(|mut file| {
            file.write_all(&MAGIC)?;
            file.write_all(&(payload.len() as u64).to_le_bytes())?;
            file.write_all(&checksum(path, payload).to_le_bytes())?;
            file.write_all(payload)
        })
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // it may not have been made; nothing else can be done about it
        let _ = fs::remove_file(&part);
    }
    written
}

/// A fast checksum of a file's name and its payload, so that a file under another's name is found too. Against damage, not against intent.
fn checksum(path: &Path, payload: &[u8]) -> u64 {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    sum(sum(0, name), payload)
}

fn sum(start: u64, bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    };
    let mut lanes = [start ^ bytes.len() as u64; LANES];
    let mut blocks = bytes.chunks_exact(8 * LANES);
    for block in &mut blocks {
        for (lane, bytes) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = mix(*lane, word(bytes));
        }
    }
    let tail = blocks.remainder().chunks(8).map(word);
    lanes.into_iter().chain(tail).fold(0, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("gr00t-packed-{}-{name}", std::process::id())).join("w.packed")
    }

    #[test]
    fn a_file_gives_back_its_payload() {
        let path = path("whole");
        assert!(read(&path, 100).unwrap().is_none());
        let payload: Vec<u8> = (0..77).collect();
        write(&path, &payload).unwrap();
        write(&path, &payload).unwrap();
        assert_eq!(read(&path, 77).unwrap(), Some(payload));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn damage_of_every_byte_and_any_length_is_found() {
        let path = path("damaged");
        let payload: Vec<u8> = (0..45).collect();
        write(&path, &payload).unwrap();
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&path, &bad).unwrap();
            assert!(read(&path, 1000).is_err(), "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert!(read(&path, 1000).is_err(), "cut at {at}");
        }
        fs::write(&path, &good).unwrap();
        assert!(read(&path, 44).is_err(), "longer than a weight can be");
        let other = path.with_file_name("other.packed");
        fs::copy(&path, &other).unwrap();
        assert!(read(&other, 1000).is_err(), "under another name");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
