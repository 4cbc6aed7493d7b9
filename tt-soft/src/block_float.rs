//! bfloat8_b and bfloat4_b tiles as tt-metal packs them, byte for byte.
//!
//! A tile is 32x32 elements in four 16x16 faces. The 16 elements of a face's row share an exponent (the largest of
//! theirs); each keeps its sign and 7 (3) bits of magnitude, the leading one included, rounded to nearest even and
//! saturating. A tile is 64 exponent bytes (face by face, row by row), then the elements in the same order, for
//! bfloat4_b two a byte, the first in the low half. Checked against vectors made with tt-metal's own packer.
//! An element with exponent 0 (zero or subnormal) is packed as 0; an infinity or NaN sets its group's exponent to 255.

use crate::error::{Error, Result};
use crate::kernels::expand::{BFP4_SCALES, BFP8_SCALES};
use crate::kernels::quantize;
use crate::tile::{FACE, TILE, TILE_ELEMENTS, tile_offset};

/// The block formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockFormat {
    /// Sign and 7 bits of magnitude.
    Bfp8B,
    /// Sign and 3 bits of magnitude.
    Bfp4B,
}

/// Elements that share an exponent.
pub(crate) const GROUP: usize = FACE;
/// Exponent bytes of a tile.
const EXPONENTS: usize = TILE_ELEMENTS / GROUP;
/// Bits of an f32's significand, the hidden one included.
const SIGNIFICAND: u32 = 24;

impl BlockFormat {
    /// TTNN's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfp8B => "bfloat8_b",
            Self::Bfp4B => "bfloat4_b",
        }
    }

    /// Magnitude bits of an element.
    #[must_use]
    pub(crate) fn magnitude_bits(self) -> u32 {
        match self {
            Self::Bfp8B => 7,
            Self::Bfp4B => 3,
        }
    }

    /// Bytes of a 32x32 tile: 1088 or 576.
    #[must_use]
    pub fn tile_bytes(self) -> usize {
        EXPONENTS + TILE_ELEMENTS * (self.magnitude_bits() as usize + 1) / 8
    }

    /// Bytes of a matrix of this shape, padded to whole tiles.
    #[must_use]
    pub fn packed_bytes(self, rows: usize, columns: usize) -> usize {
        rows.div_ceil(TILE) * columns.div_ceil(TILE) * self.tile_bytes()
    }

    /// The value of an element: sign and magnitude bits under a shared exponent. Under exponent 255 it is what the bits
    /// of an f32 with that exponent say, infinity or NaN, unless leading zeros bring it back into range.
    #[must_use]
    pub fn value(self, exponent: u8, element: u8) -> f32 {
        let bits = self.magnitude_bits();
        let magnitude = u32::from(element) & ((1 << bits) - 1);
        let negative = (element >> bits) & 1 == 1;
        let absolute = if exponent == u8::MAX && magnitude >> (bits - 1) == 1 {
            f32::from_bits(0x7f80_0000 | (magnitude << (SIGNIFICAND - bits)) & 0x007f_ffff)
        } else {
            let scales = if bits == 7 { &BFP8_SCALES } else { &BFP4_SCALES };
            magnitude as f32 * scales[usize::from(exponent)]
        };
        if negative { -absolute } else { absolute }
    }
}

/// Quantises a group: the shared exponent and, per element, sign (in the bit above) and magnitude.
#[must_use]
pub(crate) fn quantize_group(format: BlockFormat, values: &[f32; GROUP]) -> (u8, [u8; GROUP]) {
    let (exponent, elements) = match format {
        BlockFormat::Bfp8B => quantize::group::<7>(values),
        BlockFormat::Bfp4B => quantize::group::<3>(values),
    };
    let sign = 1 << format.magnitude_bits();
    (exponent, elements.map(|v| v.unsigned_abs() as u8 | if v < 0 { sign } else { 0 }))
}

/// Packs a row-major matrix; elements beyond its edge are packed as 0.
///
/// # Errors
/// If `values` is not `rows * columns` long.
pub fn pack(format: BlockFormat, values: &[f32], rows: usize, columns: usize) -> Result<Vec<u8>> {
    check_len("pack block float", values.len(), rows.checked_mul(columns), rows, columns)?;
    let mut bytes = vec![0; format.packed_bytes(rows, columns)];
    let across = columns.div_ceil(TILE);
    for (index, tile) in bytes.chunks_exact_mut(format.tile_bytes()).enumerate() {
        let (top, left) = (index / across * TILE, index % across * TILE);
        let (exponents, elements) = tile.split_at_mut(EXPONENTS);
        for row in 0..TILE {
            for face_column in [0, FACE] {
                let group: [f32; GROUP] = std::array::from_fn(|i| {
                    let (r, c) = (top + row, left + face_column + i);
                    if r < rows && c < columns { values[r * columns + c] } else { 0.0 }
                });
                let (exponent, packed) = quantize_group(format, &group);
                let first = tile_offset(row, face_column);
                exponents[first / GROUP] = exponent;
                match format {
                    BlockFormat::Bfp8B => elements[first..first + GROUP].copy_from_slice(&packed),
                    BlockFormat::Bfp4B => {
                        for (byte, pair) in elements[first / 2..].iter_mut().zip(packed.chunks_exact(2)) {
                            *byte = pair[0] | pair[1] << 4;
                        }
                    }
                }
            }
        }
    }
    Ok(bytes)
}

/// Unpacks tiles to a row-major matrix, exactly.
///
/// # Errors
/// If `bytes` is not [`BlockFormat::packed_bytes`] long.
pub fn unpack(format: BlockFormat, bytes: &[u8], rows: usize, columns: usize) -> Result<Vec<f32>> {
    let tiles = rows.div_ceil(TILE).checked_mul(columns.div_ceil(TILE));
    check_len(
        "unpack block float",
        bytes.len(),
        tiles.and_then(|t| t.checked_mul(format.tile_bytes())),
        rows,
        columns,
    )?;
    let across = columns.div_ceil(TILE);
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let start = (row / TILE * across + column / TILE) * format.tile_bytes();
            let (exponents, elements) = bytes[start..start + format.tile_bytes()].split_at(EXPONENTS);
            let at = tile_offset(row % TILE, column % TILE);
            let element = match format {
                BlockFormat::Bfp8B => elements[at],
                BlockFormat::Bfp4B => elements[at / 2] >> (at % 2 * 4) & 0xf,
            };
            values.push(format.value(exponents[at / GROUP], element));
        }
    }
    Ok(values)
}

fn check_len(op: &'static str, got: usize, wanted: Option<usize>, rows: usize, columns: usize) -> Result<()> {
    if wanted == Some(got) {
        return Ok(());
    }
    Err(Error::Shape { op, what: "buffer length", got: vec![got], wanted: vec![rows, columns] })
}

#[cfg(test)]
#[path = "block_float_tests.rs"]
mod tests;
