//! Packing: gathers panels from the sources, quantises and orders them.

use super::{GROUPS, WeightFormat, WeightOrder};
use crate::block_float::{BlockFormat, GROUP, quantize_group};
use crate::engine::SharedPtr;
use crate::error::{Error, Result};
use crate::kernels::math::bf16_bits;
use crate::kernels::{Kernels, PANEL};
use crate::view::{Dtype, RawView, View};

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
    pub(super) fn pack_panel(&self, kernels: &Kernels, panel: usize, scratch: &mut [f32]) -> Result<()> {
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
