//! One safetensors file, read with positioned reads: nothing is mapped, so a file that is cut while it is in use
//! gives an error and no signal.

mod header;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use half::{bf16, f16};
use rayon::prelude::*;

use self::header::{Entry, Header, LENGTH_BYTES, MAX_HEADER_BYTES};
use super::source::checked_range;
use super::{StoredDtype, TensorInfo, TensorSource};
use crate::{Error, Result};

/// Elements that one thread reads and converts at a time.
const CHUNK: usize = 1 << 18;

// Elements are little-endian in the file and are read in place.
const _: () =
    assert!(cfg!(target_endian = "little"), "safetensors are read in place on little-endian machines");

/// An open safetensors file with a checked header.
#[derive(Debug)]
pub struct SafetensorsFile {
    path: PathBuf,
    file: File,
    header: Header,
}

impl SafetensorsFile {
    /// Opens `path`, reads and checks its header; tensor data is not touched.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Checkpoint`] that names the tensor and offset of a file that is truncated, has
    /// overlapping or missing byte ranges, repeated names, or dtypes that are not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        // asked before opening, which waits for ever where a pipe has no writer
        let metadata = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
        if !metadata.is_file() {
            return Err(Error::checkpoint(&path, "not a file"));
        }
        let file = File::open(&path).map_err(|e| Error::io(&path, e))?;
        let bytes = metadata.len();
        if bytes < LENGTH_BYTES {
            return Err(Error::checkpoint(
                &path,
                format!("{bytes} bytes, too short for a safetensors header"),
            ));
        }
        let mut length = [0; LENGTH_BYTES as usize];
        file.read_exact_at(&mut length, 0).map_err(|e| Error::io(&path, e))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(Error::checkpoint(
                &path,
                format!(
                    "not a safetensors file: header of {length} bytes, at most {MAX_HEADER_BYTES} expected"
                ),
            ));
        }
        if length > bytes - LENGTH_BYTES {
            return Err(Error::checkpoint(
                &path,
                format!("truncated: header of {length} bytes in a file of {bytes}"),
            ));
        }
        let mut text = vec![0; length as usize];
        file.read_exact_at(&mut text, LENGTH_BYTES).map_err(|e| Error::io(&path, e))?;
        let header = Header::parse(&text, bytes).map_err(|what| Error::checkpoint(&path, what))?;
        Ok(Self { path, file, header })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of an I64 tensor, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing or has another dtype, or cannot be read.
    pub fn read_i64(&self, name: &str) -> Result<Vec<i64>> {
        self.read_stored(name, StoredDtype::I64)
    }

    /// All of a U8 tensor, row-major.
    ///
    /// # Errors
    /// [`Error::Tensor`] if it is missing or has another dtype, or cannot be read.
    pub fn read_u8(&self, name: &str) -> Result<Vec<u8>> {
        self.read_stored(name, StoredDtype::U8)
    }

    fn read_stored<T: Pod + Send>(&self, name: &str, wanted: StoredDtype) -> Result<Vec<T>> {
        let entry = self.entry(name)?;
        if entry.info.dtype != wanted {
            return Err(Error::tensor(name, format!("stored as {}, wanted {wanted}", entry.info.dtype)));
        }
        let mut out = vec![T::zeroed(); entry.info.elements()];
        self.read_in_place(name, entry, 0, &mut out)?;
        Ok(out)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.header
            .entries
            .get(name)
            .ok_or_else(|| Error::tensor(name, format!("not in {}", self.describe())))
    }

    fn read_at(&self, name: &str, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|e| {
            let what = format!("{} bytes at {offset} of {}: {e}", bytes.len(), self.path.display());
            Error::tensor(name, what)
        })
    }

    /// Elements as stored, straight into `out`.
    fn read_in_place<T: Pod + Send>(
        &self,
        name: &str,
        entry: &Entry,
        start: usize,
        out: &mut [T],
    ) -> Result<()> {
        chunks(entry, start, out, |offset, chunk| self.read_at(name, bytemuck::cast_slice_mut(chunk), offset))
    }

    /// Elements stored as `S`, converted into `out`.
    fn read_converted<S: Pod, T: Send>(
        &self,
        name: &str,
        entry: &Entry,
        start: usize,
        out: &mut [T],
        convert: impl Fn(S) -> T + Sync,
    ) -> Result<()> {
        chunks(entry, start, out, |offset, chunk| {
            let mut stored = vec![S::zeroed(); chunk.len()];
            self.read_at(name, bytemuck::cast_slice_mut(&mut stored), offset)?;
            for (slot, value) in chunk.iter_mut().zip(stored) {
                *slot = convert(value);
            }
            Ok(())
        })
    }
}

impl TensorSource for SafetensorsFile {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn names(&self) -> Vec<String> {
        self.header.order.clone()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.header.entries.get(name).map(|entry| entry.info.clone())
    }

    fn read_f32(&self, name: &str, start: usize, out: &mut [f32]) -> Result<()> {
        let entry = self.entry(name)?;
        checked_range(name, &entry.info.shape, start, out.len())?;
        match entry.info.dtype {
            StoredDtype::F32 => self.read_in_place(name, entry, start, out),
            StoredDtype::F16 => self.read_converted(name, entry, start, out, f16::to_f32),
            StoredDtype::Bf16 => self.read_converted(name, entry, start, out, bf16::to_f32),
            other => Err(not_a_weight(name, other)),
        }
    }

    fn read_bf16(&self, name: &str, start: usize, out: &mut [bf16]) -> Result<()> {
        let entry = self.entry(name)?;
        checked_range(name, &entry.info.shape, start, out.len())?;
        match entry.info.dtype {
            StoredDtype::F32 => self.read_converted(name, entry, start, out, bf16::from_f32),
            StoredDtype::F16 => {
                self.read_converted(name, entry, start, out, |value: f16| bf16::from_f32(value.to_f32()))
            }
            StoredDtype::Bf16 => self.read_in_place(name, entry, start, out),
            other => Err(not_a_weight(name, other)),
        }
    }
}

fn not_a_weight(name: &str, dtype: StoredDtype) -> Error {
    Error::tensor(name, format!("stored as {dtype}, weights are BF16, F16 or F32"))
}

/// Calls `read` with the file offset of each chunk of `out`, in parallel.
fn chunks<T: Send>(
    entry: &Entry,
    start: usize,
    out: &mut [T],
    read: impl Fn(u64, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let offset = |element: usize| entry.offset + (element * entry.info.dtype.size()) as u64;
    if out.len() <= CHUNK {
        return read(offset(start), out);
    }
    out.par_chunks_mut(CHUNK).enumerate().try_for_each(|(i, chunk)| read(offset(start + i * CHUNK), chunk))
}
