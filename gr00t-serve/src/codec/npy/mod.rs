//! Whole `.npy` files: versions 1.0, 2.0 and 3.0 are read, 1.0 is written. Source: NumPy's `numpy.lib.format`.
//!
//! ```text
//! 93 "NUMPY" | major minor | header length (u16 LE in 1.0, u32 LE after) | header, a Python dict | elements
//! ```
//!
//! Object arrays are refused by name: their elements are pickles.

mod header;

use super::array::Array;
use super::error::{CodecError, Result};
use header::Header;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read, as `numpy.load`'s.
const MAX_HEADER_BYTES: usize = 10_000;
/// Elements start at a multiple of this.
const ALIGNMENT: usize = 64;

/// Reads a file.
///
/// # Errors
/// [`CodecError::Array`] if it is not a `.npy` file of a dtype in [`Dtype`](super::Dtype) whose shape fits its bytes;
/// [`CodecError::Pickle`] for object arrays.
pub fn read(file: &[u8]) -> Result<Array> {
    let cut = || CodecError::Array(format!("npy file of {} bytes is cut short", file.len()));
    let rest = file.strip_prefix(MAGIC).ok_or_else(|| {
        let start = file.get(..MAGIC.len().min(file.len())).unwrap_or_default();
        CodecError::Array(format!("npy file starts with {start:02x?}, wanted {MAGIC:02x?}"))
    })?;
    let ([major, minor], rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return Err(CodecError::Array(format!("npy version {major}.{minor}, wanted 1.0, 2.0 or 3.0"))),
    };
    if length > MAX_HEADER_BYTES {
        return Err(CodecError::TooLarge { what: "npy header", got: length, most: MAX_HEADER_BYTES });
    }
    let (header, elements) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = Header::parse(header)?;
    Array::from_bytes(header.descr, header.shape, header.fortran_order, elements)
}

/// Writes a file, byte for byte as `numpy.save` does.
pub fn write(array: &Array) -> Vec<u8> {
    let header = Header::write(array);
    // magic, version and length, then the header with its line feed
    let fixed = MAGIC.len() + 2 + 2;
    let end = (fixed + header.len() + 1).next_multiple_of(ALIGNMENT);
    let mut file = Vec::with_capacity(end);
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    // at most 32 dimensions of 20 digits: far below 64 KiB
    file.extend_from_slice(&((end - fixed) as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.resize(end - 1, b' ');
    file.push(b'\n');
    file.extend_from_slice(&array.to_bytes());
    file
}
