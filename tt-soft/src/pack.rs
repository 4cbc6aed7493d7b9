//! Matmul weights, packed once into the order that the kernels read and kept in their width.
//!
//! The weight is a [K, N] matrix (TTNN's orientation; `nn.Linear` stores its transpose). It is cut into panels of 32
//! columns; a panel holds, for each pair of k, its 32 columns with the two weights of a column side by side, so that one
//! order serves fp32 FMA, `vdpbf16ps` and AMX tiles. K is padded to a multiple of 32 and N to whole panels, with zeros.
//! float32 weights are not paired: a panel is [K][32].
//!
//! bfloat8_b and bfloat4_b are quantised exactly as tt-metal's tiles of the [K, N] matrix are (16 neighbours along N share
//! an exponent), so the values are those that the card would hold. Magnitudes are stored as two's complement.

use crate::block_float::{BlockFormat, GROUP, quantize_group};
use crate::engine::{Engine, Need, SharedPtr};
use crate::error::{Error, Result};
use crate::kernels::expand;
use crate::kernels::math::bf16_bits;
use crate::kernels::{Kernels, PANEL};
use crate::memory::AlignedBuf;
use crate::view::{Dtype, RawView, View};

/// K is padded to a multiple of this: the depth of an AMX tile.
const K_STEP: usize = 32;
/// Groups that share an exponent, across a panel.
const GROUPS: usize = PANEL / GROUP;
/// First bytes of a serialised weight, and the version of the order described above.
const MAGIC: u64 = u64::from_le_bytes(*b"ttsoftw1");
const HEADER_WORDS: usize = 4;

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
        let floats = packer.k_padded * (PANEL + 1);
        let need = Need { jobs: n.div_ceil(PANEL), work: k * n, floats };
        let bad = std::sync::Mutex::new(None);
        engine.session().run(need, &|panels, scratch| {
            for panel in panels {
                if let Err(error) = packer.pack_panel(kernels, panel, scratch) {
                    bad.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        })?;
        match bad.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
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

    /// The weight as bytes, for a cache on disk: magic and version, format, K, N (u64 little-endian), data, exponents.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = [MAGIC, self.format as u64, self.k as u64, self.n as u64];
        let mut bytes = Vec::with_capacity(HEADER_WORDS * 8 + self.bytes());
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
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let header_bytes = HEADER_WORDS * 8;
        let Some((header, body)) = bytes.split_at_checked(header_bytes) else {
            return Err(Error::Packed {
                what: "length",
                got: bytes.len() as u64,
                wanted: header_bytes as u64,
            });
        };
        let word = |i: usize| header[i * 8..][..8].iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
        if word(0) != MAGIC {
            return Err(Error::Packed { what: "version", got: word(0), wanted: MAGIC });
        }
        let format = WeightFormat::ALL.into_iter().find(|f| *f as u64 == word(1));
        let format = format.ok_or(Error::Packed { what: "format", got: word(1), wanted: 3 })?;
        let size = |what, i: usize| {
            usize::try_from(word(i)).map_err(|_| Error::Packed {
                what,
                got: word(i),
                wanted: usize::MAX as u64,
            })
        };
        let (k, n) = (size("K", 2)?, size("N", 3)?);
        let (data, exponents) = sizes(format, k, n)?;
        if data.checked_add(exponents) != Some(body.len()) {
            let wanted = data.saturating_add(exponents) as u64;
            return Err(Error::Packed { what: "body length", got: body.len() as u64, wanted });
        }
        let mut weight = Self::zeroed(format, k, n)?;
        weight.data.as_bytes_mut().copy_from_slice(&body[..data]);
        weight.exponents.as_bytes_mut().copy_from_slice(&body[data..]);
        Ok(weight)
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

/// First column and view of each source.
type Parts = Vec<(usize, RawView)>;

fn check_sources(sources: &[View<'_>], order: WeightOrder) -> Result<(usize, usize, Parts)> {
    let (mut k, mut n, mut parts) = (None, 0, Vec::with_capacity(sources.len()));
    for source in sources {
        let shape = source.shape();
        let (part_k, part_n) = match order {
            WeightOrder::OutIn => (shape[3], shape[2]),
            WeightOrder::InOut => (shape[2], shape[3]),
        };
        let wanted_k = *k.get_or_insert(part_k);
        if shape[..2] != [1, 1] || part_k != wanted_k || source.is_empty() {
            let wanted = vec![1, 1, wanted_k, part_n];
            return Err(Error::Shape { op: "pack weight", what: "source", got: shape.into(), wanted });
        }
        if !matches!(source.dtype(), Dtype::F32 | Dtype::Bf16) {
            let wanted = "float32 or bfloat16";
            return Err(Error::Dtype { op: "pack weight", what: "source", got: source.dtype(), wanted });
        }
        parts.push((n, source.raw()));
        n += part_n;
    }
    Ok((k.unwrap_or(0), n, parts))
}

struct Packer {
    parts: Parts,
    order: WeightOrder,
    format: WeightFormat,
    k: usize,
    k_padded: usize,
    data: SharedPtr<u8>,
    exponents: SharedPtr<u8>,
}

impl Packer {
    fn pack_panel(&self, kernels: &Kernels, panel: usize, scratch: &mut [f32]) -> Result<()> {
        let (line, rows) = scratch.split_at_mut(self.k_padded);
        rows.fill(0.0);
        self.gather(kernels, panel, line, rows);
        let bytes = self.k_padded / 2 * PANEL * self.format.pair_bytes();
        // SAFETY: the buffers have room for every panel (`sizes`), and each panel is packed by one member.
        let data = unsafe { std::slice::from_raw_parts_mut(self.data.get().add(panel * bytes), bytes) };
        match self.format.block() {
            None if self.format == WeightFormat::F32 => data.copy_from_slice(bytemuck::cast_slice(rows)),
            None => {
                for (pair, out) in rows.chunks_exact(2 * PANEL).zip(data.chunks_exact_mut(4 * PANEL)) {
                    for (column, out) in out.chunks_exact_mut(4).enumerate() {
                        let word = u32::from(bf16_bits(pair[column]))
                            | u32::from(bf16_bits(pair[PANEL + column])) << 16;
                        out.copy_from_slice(&word.to_le_bytes());
                    }
                }
            }
            Some(block) => {
                let len = self.k_padded * GROUPS;
                // SAFETY: as for `data`.
                let exponents =
                    unsafe { std::slice::from_raw_parts_mut(self.exponents.get().add(panel * len), len) };
                quantize_panel(block, panel, rows, data, exponents)?;
            }
        }
        Ok(())
    }

    /// Fills `rows` ([k][PANEL]) with the columns of a panel.
    fn gather(&self, kernels: &Kernels, panel: usize, line: &mut [f32], rows: &mut [f32]) {
        let first = panel * PANEL;
        for (start, view) in &self.parts {
            let width = view.geometry.shape[if self.order == WeightOrder::OutIn { 2 } else { 3 }];
            let (low, high) = (first.max(*start), (first + PANEL).min(start + width));
            if low >= high {
                continue;
            }
            match self.order {
                WeightOrder::OutIn => {
                    for n in low..high {
                        // SAFETY: row `n - start` of K elements is inside the source.
                        unsafe { view.load(kernels, n - start, 0, &mut line[..self.k]) };
                        for (row, v) in rows.chunks_exact_mut(PANEL).zip(&line[..self.k]) {
                            row[n - first] = *v;
                        }
                    }
                }
                WeightOrder::InOut => {
                    for (k, row) in rows.chunks_exact_mut(PANEL).take(self.k).enumerate() {
                        // SAFETY: columns `low - start .. high - start` of row k are inside the source.
                        unsafe { view.load(kernels, k, low - start, &mut row[low - first..high - first]) };
                    }
                }
            }
        }
    }
}

fn quantize_panel(
    format: BlockFormat,
    panel: usize,
    rows: &[f32],
    data: &mut [u8],
    exponents: &mut [u8],
) -> Result<()> {
    let bits = format.magnitude_bits();
    for (k, row) in rows.chunks_exact(PANEL).enumerate() {
        for (group, values) in row.as_chunks::<GROUP>().0.iter().enumerate() {
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                let n = panel * PANEL + group * GROUP + i;
                return Err(Error::NotFinite { k, n, value: values[i], format: format.name() });
            }
            let (exponent, elements) = quantize_group(format, values);
            exponents[k * GROUPS + group] = exponent;
            let pairs = k / 2 * PANEL + group * GROUP;
            for (i, element) in elements.iter().enumerate() {
                let magnitude = (element & ((1 << bits) - 1)) as i8;
                let signed = if element >> bits == 0 { magnitude } else { -magnitude } as u8;
                match format {
                    BlockFormat::Bfp8B => data[(pairs + i) * 2 + k % 2] = signed,
                    BlockFormat::Bfp4B => data[pairs + i] |= (signed & 0xf) << (4 * (k % 2)),
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
