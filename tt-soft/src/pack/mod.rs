//! Matmul weights, packed once into the order that the kernels read and kept in their width.
//!
//! The weight is a [K, N] matrix (TTNN's orientation; `nn.Linear` stores its transpose). It is cut into panels of 32
//! columns; a panel holds, for each pair of k, its 32 columns with the two weights of a column side by side, so that one
//! order serves fp32 FMA, `vdpbf16ps` and AMX tiles. K is padded to a multiple of 32 and N to whole panels, with zeros.
//! float32 weights are not paired: a panel is `[K][32]`.
//!
//! bfloat8_b and bfloat4_b are quantised exactly as tt-metal's tiles of the [K, N] matrix are (16 neighbours along N share
//! an exponent), so the values are those that the card would hold. Magnitudes are stored as two's complement.

mod packer;

use crate::block_float::{BlockFormat, GROUP};
use crate::engine::{Engine, Need, SharedPtr};
use crate::error::{Error, Result};
use crate::kernels::expand;
use crate::kernels::{Kernels, PANEL};
use crate::memory::AlignedBuf;
use crate::view::View;
use packer::{Packer, check_sources};
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

/// K is padded to a multiple of this: the depth of an AMX tile.
const K_STEP: usize = 32;
/// Groups that share an exponent, across a panel.
const GROUPS: usize = PANEL / GROUP;
/// First bytes of a serialised weight, and the version of the order described above.
const MAGIC: u64 = u64::from_le_bytes(*b"ttsoftw1");
const HEADER_WORDS: usize = 4;
const HEADER_BYTES: usize = 8 * HEADER_WORDS;
/// Bytes that are read at a time: what was read is still in the cache when it is looked at.
const PIECE: usize = 256 * 1024;

/// Fills a part of some bytes from an offset on, both multiples of 8 but for what the last part has; from several threads at once.
pub type ReadAt<'a> = dyn Fn(usize, &mut [u8]) -> std::io::Result<()> + Sync + 'a;

/// What a packed weight is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WeightFormat {
    /// float32: multiplied in fp32, activations are not rounded.
    F32,
    /// bfloat16.
    Bf16,
    /// bfloat8_b: 8 bits and a shared exponent.
    Bfp8B,
    /// bfloat4_b: 4 bits and a shared exponent.
    Bfp4B,
}

impl WeightFormat {
    /// All formats, widest first.
    pub const ALL: [Self; 4] = [Self::F32, Self::Bf16, Self::Bfp8B, Self::Bfp4B];

    /// TTNN's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::Bfp8B => BlockFormat::Bfp8B.name(),
            Self::Bfp4B => BlockFormat::Bfp4B.name(),
        }
    }

    /// Bytes of a panel's row of pairs.
    pub(crate) fn row_bytes(self) -> usize {
        PANEL * self.pair_bytes()
    }

    /// Bytes of a pair of weights.
    fn pair_bytes(self) -> usize {
        match self {
            Self::F32 => 8,
            Self::Bf16 => 4,
            Self::Bfp8B => 2,
            Self::Bfp4B => 1,
        }
    }

    fn block(self) -> Option<BlockFormat> {
        match self {
            Self::F32 | Self::Bf16 => None,
            Self::Bfp8B => Some(BlockFormat::Bfp8B),
            Self::Bfp4B => Some(BlockFormat::Bfp4B),
        }
    }
}

/// Order of a weight's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WeightOrder {
    /// [N, K], as `nn.Linear.weight` is stored.
    OutIn,
    /// [K, N].
    InOut,
}

/// A packed weight of K inputs and N outputs.
#[derive(Debug, Clone)]
pub struct PackedWeight {
    format: WeightFormat,
    k: usize,
    n: usize,
    data: AlignedBuf,
    /// [panel][k][group], for the block formats.
    exponents: AlignedBuf,
}

impl PackedWeight {
    /// Packs one matrix, or several side by side along N (as for a fused Q, K, V). Sources are float32 or bfloat16 views
    /// of shape [1, 1, N, K] or [1, 1, K, N]; bfloat16 is rounded to nearest even.
    ///
    /// # Errors
    /// If sources disagree in K or are empty, or a block format is asked for a weight that is not finite.
    pub fn pack(
        engine: &Engine,
        sources: &[View<'_>],
        order: WeightOrder,
        format: WeightFormat,
    ) -> Result<Self> {
        let (k, n, parts) = check_sources(sources, order)?;
        let mut weight = Self::zeroed(format, k, n)?;
        let packer = Packer {
            parts,
            order,
            format,
            k,
            k_padded: k.next_multiple_of(K_STEP),
            data: SharedPtr(weight.data.as_mut_ptr()),
            exponents: SharedPtr(weight.exponents.as_mut_ptr()),
        };
        let kernels = engine.kernels();
        let floats = packer.k_padded * PANEL;
        let need = Need { jobs: n.div_ceil(PANEL), work: k * n, floats };
        let bad = Mutex::new(None);
        engine.session().run(need, &|panels, scratch| {
            for panel in panels {
                if let Err(error) = packer.pack_panel(kernels, panel, scratch) {
                    bad.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        })?;
        match bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(weight),
        }
    }

    fn zeroed(format: WeightFormat, k: usize, n: usize) -> Result<Self> {
        let (data, exponents) = sizes(format, k, n)?;
        Ok(Self { format, k, n, data: AlignedBuf::zeroed(data), exponents: AlignedBuf::zeroed(exponents) })
    }

    /// Inputs.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Outputs.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Bytes held, padding and exponents included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.len() + self.exponents.len()
    }

    /// The exact values as a row-major [K, N] matrix.
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.k * self.n];
        let mut rows = vec![0.0; self.k_padded() * PANEL];
        for panel in 0..self.panels() {
            self.expand_panel(panel, &mut rows);
            let (first, columns) = (panel * PANEL, PANEL.min(self.n - panel * PANEL));
            for k in 0..self.k {
                values[k * self.n + first..][..columns].copy_from_slice(&rows[k * PANEL..][..columns]);
            }
        }
        values
    }

    fn expand_panel(&self, panel: usize, rows: &mut [f32]) {
        let pairs = self.pairs_of(panel);
        let exponents = self.exponents_of(panel);
        match self.format {
            WeightFormat::F32 => {
                rows.copy_from_slice(&self.data.as_slice::<f32>()[pairs.start * 2..pairs.end * 2]);
            }
            WeightFormat::Bf16 => expand::bf16_to_f32(&self.data.as_slice::<u32>()[pairs], rows),
            WeightFormat::Bfp8B => expand::bfp8_to_f32(&self.data.as_slice::<u16>()[pairs], exponents, rows),
            WeightFormat::Bfp4B => expand::bfp4_to_f32(&self.data.as_bytes()[pairs], exponents, rows),
        }
    }

    pub(crate) fn panels(&self) -> usize {
        self.n.div_ceil(PANEL)
    }

    fn k_padded(&self) -> usize {
        self.k.next_multiple_of(K_STEP)
    }

    /// Pairs of a panel, as indices of the data.
    fn pairs_of(&self, panel: usize) -> std::ops::Range<usize> {
        let pairs = self.k_padded() / 2 * PANEL;
        panel * pairs..(panel + 1) * pairs
    }

    fn exponents_of(&self, panel: usize) -> &[[u8; GROUPS]] {
        if self.format.block().is_none() {
            return &[];
        }
        let all: &[[u8; GROUPS]] = self.exponents.as_slice();
        &all[panel * self.k_padded()..(panel + 1) * self.k_padded()]
    }

    /// Words `k0 .. k0 + count` of a panel in f32 ([k][PANEL]), in place or expanded into `buf`. `k0` is even.
    pub(crate) fn f32_words<'a>(
        &'a self,
        kernels: &Kernels,
        panel: usize,
        k0: usize,
        count: usize,
        buf: &'a mut [f32],
    ) -> *const u32 {
        let start = self.pairs_of(panel).start + k0 / 2 * PANEL;
        let pairs = start..start + count.div_ceil(2) * PANEL;
        let exponents = self.exponents_of(panel).get(k0..k0 + count.next_multiple_of(2)).unwrap_or(&[]);
        let expand = &kernels.expand;
        match self.format {
            WeightFormat::F32 => return self.data.as_slice::<u32>()[pairs.start * 2..].as_ptr(),
            WeightFormat::Bf16 => (expand.bf16_to_f32)(&self.data.as_slice()[pairs], buf),
            WeightFormat::Bfp8B => (expand.bfp8_to_f32)(&self.data.as_slice()[pairs], exponents, buf),
            WeightFormat::Bfp4B => (expand.bfp4_to_f32)(&self.data.as_bytes()[pairs], exponents, buf),
        }
        buf.as_ptr().cast()
    }

    /// Words (pairs of bf16) `w0 .. w0 + count` of a panel, in place or expanded into `buf`. Not for float32.
    pub(crate) fn bf16_words<'a>(
        &'a self,
        kernels: &Kernels,
        panel: usize,
        w0: usize,
        count: usize,
        buf: &'a mut [f32],
    ) -> *const u32 {
        let start = self.pairs_of(panel).start + w0 * PANEL;
        let pairs = start..start + count * PANEL;
        let exponents = self.exponents_of(panel).get(2 * w0..2 * (w0 + count)).unwrap_or(&[]);
        let expand = &kernels.expand;
        let words: &mut [u32] = bytemuck::cast_slice_mut(buf);
        match self.format {
            WeightFormat::F32 => unreachable!("float32 weights are multiplied in fp32"),
            WeightFormat::Bf16 => return self.data.as_slice::<u32>()[pairs].as_ptr(),
            WeightFormat::Bfp8B => (expand.bfp8_to_bf16)(&self.data.as_slice()[pairs], exponents, words),
            WeightFormat::Bfp4B => (expand.bfp4_to_bf16)(&self.data.as_bytes()[pairs], exponents, words),
        }
        words.as_ptr()
    }

    /// Rows of pairs of a panel and their exponents as they are kept, for kernels that expand by themselves.
    pub(crate) fn packed_rows(&self, panel: usize, rows: std::ops::Range<usize>) -> (&[u8], &[u8]) {
        let bytes = self.format.row_bytes();
        let start = self.k_padded() / 2 * panel;
        let data = &self.data.as_bytes()[(start + rows.start) * bytes..(start + rows.end) * bytes];
        let exponents = self.exponents_of(panel).get(2 * rows.start..2 * rows.end).unwrap_or(&[]);
        (data, bytemuck::cast_slice(exponents))
    }

    /// Up to `count` rows of pairs as they are kept, from row `first` of a panel on: the next panel's follow a panel's.
    pub(crate) fn rows_from(&self, panel: usize, first: usize, count: usize) -> &[u8] {
        let (bytes, data) = (self.format.row_bytes(), self.data.as_bytes());
        let start = data.len().min((self.k_padded() / 2 * panel + first) * bytes);
        &data[start..data.len().min(start + count * bytes)]
    }

    /// The weight as bytes, for a cache on disk: magic and version, format, K, N (u64 little-endian), data, exponents.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = [MAGIC, self.format as u64, self.k as u64, self.n as u64];
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.bytes());
        bytes.extend(header.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(self.data.as_bytes());
        bytes.extend_from_slice(self.exponents.as_bytes());
        bytes
    }

    /// A weight from [`PackedWeight::to_bytes`].
    ///
    /// # Errors
    /// If the bytes are of another version or not of the length that their header asks for. The contents are not checked:
    /// a cache keeps a checksum.
    pub fn from_bytes(engine: &Engine, bytes: &[u8]) -> Result<Self> {
        Self::read(engine, bytes.len(), &|offset, out| {
            let end = offset.checked_add(out.len());
            let part = end.and_then(|end| bytes.get(offset..end)).ok_or(ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(part);
            Ok(())
        })
    }

    /// [`from_bytes`](Self::from_bytes) of `length` bytes that are read where they are to be, without a copy, on all threads
    /// of `engine`.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and the first of `read`.
    pub fn read(engine: &Engine, length: usize, read: &ReadAt<'_>) -> Result<Self> {
        let wrong = |what, got, wanted| Error::Packed { what, got, wanted };
        if length < HEADER_BYTES {
            return Err(wrong("length", length as u64, HEADER_BYTES as u64));
        }
        let mut header = [0; HEADER_BYTES];
        read(0, &mut header).map_err(|source| Error::Read { source })?;
        let word = |i: usize| header[i * 8..][..8].iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
        if word(0) != MAGIC {
            return Err(wrong("version", word(0), MAGIC));
        }
        let format = WeightFormat::ALL.into_iter().find(|f| *f as u64 == word(1));
        let format = format.ok_or(wrong("format", word(1), 3))?;
        let size = |what, i| usize::try_from(word(i)).map_err(|_| wrong(what, word(i), usize::MAX as u64));
        let (k, n) = (size("K", 2)?, size("N", 3)?);
        let (data, exponents) = sizes(format, k, n)?;
        if data.checked_add(exponents) != Some(length - HEADER_BYTES) {
            let wanted = data.saturating_add(exponents) as u64;
            return Err(wrong("body length", (length - HEADER_BYTES) as u64, wanted));
        }
        let mut weight = Self::zeroed(format, k, n)?;
        fill(engine, &mut weight.data, HEADER_BYTES, read)?;
        fill(engine, &mut weight.exponents, HEADER_BYTES + data, read)?;
        Ok(weight)
    }
}

/// Fills `buffer` with the bytes from offset `first` on.
fn fill(engine: &Engine, buffer: &mut AlignedBuf, first: usize, read: &ReadAt<'_>) -> Result<()> {
    let (len, to) = (buffer.len(), SharedPtr(buffer.as_mut_ptr()));
    let failed = Mutex::new(None);
    let need = Need { jobs: len.div_ceil(PIECE), work: len, floats: 0 };
    engine.session().run(need, &|pieces, _| {
        for start in pieces.map(|piece| piece * PIECE) {
            let count = PIECE.min(len - start);
            // SAFETY: pieces are disjoint parts of the buffer, which is borrowed until all of them are read.
            let piece = unsafe { std::slice::from_raw_parts_mut(to.get().add(start), count) };
            if let Err(error) = read(first + start, piece) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
        }
    })?;
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(source) => Err(Error::Read { source }),
        None => Ok(()),
    }
}

/// Bytes of data and of exponents.
fn sizes(format: WeightFormat, k: usize, n: usize) -> Result<(usize, usize)> {
    let error = || Error::Shape { op: "pack weight", what: "K and N", got: vec![k, n], wanted: vec![1, 1] };
    if k == 0 || n == 0 {
        return Err(error());
    }
    let padded = k.checked_next_multiple_of(K_STEP).zip(n.checked_next_multiple_of(PANEL));
    let pairs = padded.and_then(|(k, n)| (k / 2).checked_mul(n)).ok_or_else(error)?;
    let data =
        pairs.checked_mul(format.pair_bytes()).filter(|&b| isize::try_from(b).is_ok()).ok_or_else(error)?;
    Ok((data, if format.block().is_some() { pairs * 2 / GROUP } else { 0 }))
}

#[cfg(test)]
mod tests;
