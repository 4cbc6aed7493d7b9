//! Packing: gathers panels from the sources, quantises and orders them.

use super::{GROUPS, WeightFormat, WeightOrder};
use crate::block_float::BlockFormat;
use crate::engine::SharedPtr;
use crate::error::{Error, Result};
use crate::kernels::math::bf16_bits;
use crate::kernels::{Kernels, PANEL};
use crate::view::{Dtype, RawView, View};

/// Elements of K that are transposed at a time: 32 columns of them take 8 KiB.
const PIECE: usize = 64;

/// First column and view of each source.
type Parts = Vec<(usize, RawView)>;

pub(super) fn check_sources(sources: &[View<'_>], order: WeightOrder) -> Result<(usize, usize, Parts)> {
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

pub(super) struct Packer {
    pub(super) parts: Parts,
    pub(super) order: WeightOrder,
    pub(super) format: WeightFormat,
    pub(super) k: usize,
    pub(super) k_padded: usize,
    pub(super) data: SharedPtr<u8>,
    pub(super) exponents: SharedPtr<u8>,
}

impl Packer {
    /// Packs one panel; `rows` is scratch, [k][PANEL].
    pub(super) fn pack_panel(&self, kernels: &Kernels, panel: usize, rows: &mut [f32]) -> Result<()> {
        rows.fill(0.0);
        self.gather(kernels, panel, rows);
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
                check_finite(block, panel, rows)?;
                match block {
                    BlockFormat::Bfp8B => (kernels.quantize_bfp8)(rows, data, exponents),
                    BlockFormat::Bfp4B => (kernels.quantize_bfp4)(rows, data, exponents),
                }
            }
        }
        Ok(())
    }

    /// Fills `rows` ([k][PANEL]) with the columns of a panel.
    fn gather(&self, kernels: &Kernels, panel: usize, rows: &mut [f32]) {
        let mut piece = [0f32; PANEL * PIECE];
        let first = panel * PANEL;
        for (start, view) in &self.parts {
            let width = view.geometry.shape[if self.order == WeightOrder::OutIn { 2 } else { 3 }];
            let (low, high) = (first.max(*start), (first + PANEL).min(start + width));
            if low >= high {
                continue;
            }
            match self.order {
                WeightOrder::OutIn => {
                    let columns = low - first..high - first;
                    for k0 in (0..self.k).step_by(PIECE) {
                        let len = PIECE.min(self.k - k0);
                        for (line, n) in piece.chunks_exact_mut(PIECE).zip(low..high) {
                            // SAFETY: row `n - start` of K elements is inside the source.
                            unsafe { view.load(kernels, n - start, k0, &mut line[..len]) };
                        }
                        for (k, row) in rows[k0 * PANEL..].chunks_exact_mut(PANEL).take(len).enumerate() {
                            for (v, line) in row[columns.clone()].iter_mut().zip(piece.chunks_exact(PIECE)) {
                                *v = line[k];
                            }
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

fn check_finite(format: BlockFormat, panel: usize, rows: &[f32]) -> Result<()> {
    match rows.iter().position(|v| !v.is_finite()) {
        Some(i) => {
            let (k, n) = (i / PANEL, panel * PANEL + i % PANEL);
            Err(Error::NotFinite { k, n, value: rows[i], format: format.name() })
        }
        None => Ok(()),
    }
}
