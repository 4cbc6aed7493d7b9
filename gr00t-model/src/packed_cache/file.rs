//! One file of the cache: magic, length of the payload, checksum of the file's name and the payload, payload.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// First bytes of a file, with the version of this form.
const MAGIC: [u8; 8] = *b"GR00TPK2";
/// Magic, length, checksum.
const HEADER_BYTES: usize = 24;
/// Bytes per element that no packed format exceeds, padding to panels aside.
const MAX_ELEMENT_BYTES: u64 = 8;
/// Elements of padding per side that no packed format exceeds.
const MAX_PADDING: u64 = 256;
/// Bytes of a word of the checksum.
const WORD: usize = 8;
/// Odd multipliers of the checksum: the golden ratio's, as in splitmix64, and its first mixing step's.
const MULTIPLIERS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9];

/// Most bytes that a packed `[k, n]` weight can have.
pub(super) fn most_bytes(k: usize, n: usize) -> u64 {
    let padded = |extent: usize| (extent as u64).saturating_add(MAX_PADDING);
    padded(k).saturating_mul(padded(n)).saturating_mul(MAX_ELEMENT_BYTES)
}

/// A file whose payload is read in parts, in any order and from several threads. Whichever read gives the last bytes finds out
/// whether the checksum is right.
#[derive(Debug)]
pub(super) struct Payload {
    file: File,
    length: usize,
    /// What the checksum of the payload is to be.
    wanted: u64,
    read: Mutex<Read>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Read {
    bytes: usize,
    sum: u64,
}

impl Payload {
    /// The payload of the file, `None` if there is no file.
    ///
    /// # Errors
    /// A file that cannot be read, has another form, or is longer than `most` bytes.
    pub(super) fn open(path: &Path, most: u64) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        if !header.starts_with(&MAGIC) {
            return Err(damaged("another form"));
        }
        let [_, length, sum] = [0, 1, 2].map(|i| word(header.get(i * WORD..).unwrap_or_default()));
        if length > most || file.metadata()?.len() != length.saturating_add(HEADER_BYTES as u64) {
            return Err(damaged("another length"));
        }
        let length = usize::try_from(length).map_err(|_| damaged("another length"))?;
        let wanted = sum.wrapping_sub(of_name(path));
        Ok(Some(Self { file, length, wanted, read: Mutex::default() }))
    }

    /// Bytes of the payload.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Fills `out` from `offset` on, a multiple of [`WORD`], as is the length of all but the last part. Each byte is to be read once.
    ///
    /// # Errors
    /// A file that cannot be read; with the last bytes, a checksum that is wrong.
    pub(super) fn read(&self, offset: usize, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(out.len());
        if !offset.is_multiple_of(WORD) || (end != self.length && !out.len().is_multiple_of(WORD)) {
            return Err(Error::new(ErrorKind::InvalidInput, "a part that is not of whole words"));
        }
        self.file.read_exact_at(out, (HEADER_BYTES + offset) as u64)?;
        let part = sum(offset, out);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.bytes = read.bytes.saturating_add(out.len());
        read.sum = read.sum.wrapping_add(part);
        if read.bytes < self.length || (read.bytes == self.length && read.sum == self.wanted) {
            Ok(())
        } else {
            Err(damaged("another checksum"))
        }
    }

    /// Whether all was read, and so is right unless a read was an error.
    pub(super) fn is_read(&self) -> bool {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).bytes == self.length
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Writes `payload` so that the file appears complete or not at all. It is not flushed to the disk: what a power cut leaves is found by
/// its checksum.
pub(super) fn write(path: &Path, payload: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unique = format!(".{}-{}.part", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let part = folder.join(unique);
    let checksum = of_name(path).wrapping_add(sum(0, payload));
    let written = File::create_new(&part)
        .and_then(|mut file| {
            file.write_all(&MAGIC)?;
            file.write_all(&(payload.len() as u64).to_le_bytes())?;
            file.write_all(&checksum.to_le_bytes())?;
            file.write_all(payload)
        })
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // it may not have been made; nothing else can be done about it
        let _ = fs::remove_file(&part);
    }
    written
}

/// The part of the checksum that finds a file under another's name.
fn of_name(path: &Path) -> u64 {
    sum(0, path.file_name().unwrap_or_default().as_encoded_bytes()).rotate_left(1)
}

/// The checksum of bytes from `offset` of a payload on: a sum of what each word and its place mix to, so that parts can be summed in
/// any order. A word that is wrong changes it, whichever it is. Against damage, not against intent.
fn sum(offset: usize, bytes: &[u8]) -> u64 {
    let [place, mix] = MULTIPLIERS;
    let term = |sum: u64, (bytes, at): (&[u8], u64)| {
        let mixed = (word(bytes) ^ at.wrapping_mul(place)).wrapping_mul(mix);
        sum.wrapping_add(mixed ^ mixed >> 32)
    };
    let (words, tail) = bytes.as_chunks::<WORD>();
    let tail = Some(tail).filter(|tail| !tail.is_empty());
    let first = (offset / WORD) as u64 + 1;
    let sum = words.iter().map(<[u8; WORD]>::as_slice).zip(first..).fold(0, term);
    tail.into_iter().zip(first + words.len() as u64..).fold(sum, term)
}

/// The first bytes as a word, 0 in the place of those that are missing.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("gr00t-packed-{}-{name}", std::process::id())).join("w.packed")
    }

    /// The whole payload, in parts of `part` bytes from last to first.
    fn read(path: &Path, most: u64, part: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = Payload::open(path, most)? else { return Ok(None) };
        let mut payload = vec![0; file.length()];
        for (i, out) in payload.chunks_mut(part).enumerate().rev() {
            assert!(!file.is_read());
            file.read(i * part, out)?;
        }
        assert!(file.is_read());
        Ok(Some(payload))
    }

    #[test]
    fn a_file_gives_back_its_payload() {
        let path = path("whole");
        assert!(read(&path, 100, 8).unwrap().is_none());
        let payload: Vec<u8> = (0..77).collect();
        write(&path, &payload).unwrap();
        write(&path, &payload).unwrap();
        for part in [8, 40, 80] {
            assert_eq!(read(&path, 77, part).unwrap().as_ref(), Some(&payload));
        }
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
            assert!(read(&path, 1000, 16).is_err(), "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert!(read(&path, 1000, 16).is_err(), "cut at {at}");
        }
        let mut swapped = good.clone();
        let (one, other) = swapped.split_at_mut(HEADER_BYTES + 16);
        one[HEADER_BYTES..][..8].swap_with_slice(&mut other[..8]);
        fs::write(&path, &swapped).unwrap();
        assert!(read(&path, 1000, 16).is_err(), "two words in each other's place");
        fs::write(&path, &good).unwrap();
        assert!(read(&path, 44, 16).is_err(), "longer than a weight can be");
        let other = path.with_file_name("other.packed");
        fs::copy(&path, &other).unwrap();
        assert!(read(&other, 1000, 16).is_err(), "under another name");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn parts_that_overlap_or_split_words_are_errors() {
        let path = path("parts");
        write(&path, &[7; 40]).unwrap();
        let open = || Payload::open(&path, 100).unwrap().unwrap();
        assert!(open().read(4, &mut [0; 8]).is_err());
        assert!(open().read(0, &mut [0; 12]).is_err());
        assert!(open().read(32, &mut [0; 16]).is_err(), "past the end");
        let file = open();
        file.read(0, &mut [0; 32]).unwrap();
        assert!(file.read(24, &mut [0; 16]).is_err(), "bytes that were read before");
        assert!(!file.is_read());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
