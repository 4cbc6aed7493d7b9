//! The tile registers and what the instructions do to them.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: the operation sections of `LDTILECFG`,
//! `TILELOADD`, `TILESTORED`, `TILEZERO`, `TILERELEASE` and `TDPBF16PS`, and exception classes AMX-E1 to AMX-E6. What
//! would be an exception is a [`Fault`]; so is `start_row`, which only an interrupted instruction leaves behind.

use super::instruction::{Fault, Instruction, Memory};

const TILES: usize = 8;
const MAX_ROWS: usize = 16;
/// Bytes of a row.
const ROW: usize = 64;
const WORDS: usize = ROW / 4;

type Row = [u32; WORDS];

/// Configuration and contents of the tile registers of a thread.
#[derive(Debug)]
pub(super) struct Tiles {
    configured: bool,
    rows: [usize; TILES],
    row_bytes: [usize; TILES],
    data: [[Row; MAX_ROWS]; TILES],
}

impl Tiles {
    /// As a thread starts: not configured.
    pub(super) const fn new() -> Self {
        Self {
            configured: false,
            rows: [0; TILES],
            row_bytes: [0; TILES],
            data: [[[0; WORDS]; MAX_ROWS]; TILES],
        }
    }

    /// Does what the instruction does; `register` reads a general register.
    ///
    /// # Safety
    /// The memory operand may be read or written as the instruction does.
    pub(super) unsafe fn execute(
        &mut self,
        instruction: Instruction,
        register: &dyn Fn(u8) -> u64,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe {
            match instruction {
                Instruction::LoadConfig(memory) => {
                    let (at, index) = address(memory, register);
                    self.load_config(&*((at + index) as *const [u8; ROW]))
                }
                Instruction::Release => {
                    *self = Self::new();
                    Ok(())
                }
                Instruction::Zero { tile } => {
                    self.check(tile)?;
                    self.data[tile] = [[0; WORDS]; MAX_ROWS];
                    Ok(())
                }
                Instruction::Load { tile, from } => {
                    self.check(tile)?;
                    let (at, stride) = address(from, register);
                    self.data[tile] = [[0; WORDS]; MAX_ROWS];
                    for row in 0..self.rows[tile] {
                        let from = at.wrapping_add(stride.wrapping_mul(row)) as *const u8;
                        let to = self.data[tile][row].as_mut_ptr().cast::<u8>();
                        std::ptr::copy_nonoverlapping(from, to, self.row_bytes[tile]);
                    }
                    Ok(())
                }
                Instruction::Store { tile, to } => {
                    self.check(tile)?;
                    let (at, stride) = address(to, register);
                    for row in 0..self.rows[tile] {
                        let to = at.wrapping_add(stride.wrapping_mul(row)) as *mut u8;
                        let from = self.data[tile][row].as_ptr().cast::<u8>();
                        std::ptr::copy_nonoverlapping(from, to, self.row_bytes[tile]);
                    }
                    Ok(())
                }
                Instruction::Dot { sum, a, b } => self.dot(sum, a, b),
            }
        }
    }

    /// `LDTILECFG`: palette, start row, 14 reserved bytes, 16 times the bytes of a row, 16 times the rows.
    fn load_config(&mut self, bytes: &[u8; ROW]) -> Result<(), Fault> {
        let row_bytes =
            |tile: usize| usize::from(u16::from_le_bytes([bytes[16 + 2 * tile], bytes[17 + 2 * tile]]));
        let rows = |tile: usize| usize::from(bytes[48 + tile]);
        match bytes[0] {
            0 => {
                *self = Self::new();
                return Ok(());
            }
            1 => {}
            _ => return Err(Fault("#GP: palette")),
        }
        if bytes[1] != 0 {
            return Err(Fault("start_row is not emulated"));
        }
        if bytes[2..16].iter().any(|b| *b != 0) {
            return Err(Fault("#GP: reserved bytes of the configuration"));
        }
        for tile in 0..2 * TILES {
            if tile >= TILES && (rows(tile), row_bytes(tile)) != (0, 0) {
                return Err(Fault("#GP: there are 8 tiles"));
            }
            if rows(tile) > MAX_ROWS || row_bytes(tile) > ROW {
                return Err(Fault("#GP: a tile has at most 16 rows of 64 bytes"));
            }
            if (rows(tile) == 0) != (row_bytes(tile) == 0) {
                return Err(Fault("#GP: a tile with rows or columns only"));
            }
        }
        *self = Self::new();
        self.configured = true;
        self.rows = std::array::from_fn(rows);
        self.row_bytes = std::array::from_fn(row_bytes);
        Ok(())
    }

    fn check(&self, tile: usize) -> Result<(), Fault> {
        match (self.configured, self.rows[tile]) {
            (false, _) => Err(Fault("#UD: tiles are not configured")),
            (true, 0) => Err(Fault("#UD: this tile is not configured")),
            _ => Ok(()),
        }
    }

    /// `TDPBF16PS`.
    fn dot(&mut self, sum: usize, a: usize, b: usize) -> Result<(), Fault> {
        for tile in [sum, a, b] {
            self.check(tile)?;
            if !self.row_bytes[tile].is_multiple_of(4) {
                return Err(Fault("#UD: rows are not whole words"));
            }
        }
        if sum == a || sum == b || a == b {
            return Err(Fault("#UD: one tile as two operands"));
        }
        if self.rows[sum] != self.rows[a] {
            return Err(Fault("#UD: sums and the first factor differ in rows"));
        }
        if self.row_bytes[sum] != self.row_bytes[b] {
            return Err(Fault("#UD: sums and the second factor differ in columns"));
        }
        if self.row_bytes[a] / 4 != self.rows[b] {
            return Err(Fault("#UD: columns of the first factor are not the rows of the second"));
        }
        let (a_rows, b_rows) = (&self.data[a][..self.rows[a]], self.data[b]);
        let words = self.rows[b];
        let mut sums = self.data[sum];
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: just asked.
            unsafe { dot_avx512(&mut sums, a_rows, &b_rows[..words]) };
        } else {
            dot_rows(&mut sums, a_rows, &b_rows[..words]);
        }
        let columns = self.row_bytes[sum] / 4;
        for row in &mut sums {
            row[columns..].fill(0);
        }
        sums[self.rows[sum]..].fill([0; WORDS]);
        self.data[sum] = sums;
        Ok(())
    }
}

/// Base with displacement, and the shifted index.
fn address(memory: Memory, register: &dyn Fn(u8) -> u64) -> (usize, usize) {
    let base = memory.base.map_or(0, register).wrapping_add_signed(i64::from(memory.displacement));
    let index = memory.index.map_or(0, register) << memory.shift;
    (base as usize, index as usize)
}

/// Even and odd products are added up apart, with fused rounding; the two sums are added, then that to what was there.
#[inline(always)]
fn dot_rows(sums: &mut [Row; MAX_ROWS], a: &[Row], b: &[Row]) {
    for (sums, a) in sums.iter_mut().zip(a) {
        let (mut even, mut odd) = ([0f32; WORDS], [0f32; WORDS]);
        for (a, b) in a.iter().zip(b) {
            for n in 0..WORDS {
                even[n] = flushed(low(*a).mul_add(low(b[n]), even[n]));
                odd[n] = flushed(high(*a).mul_add(high(b[n]), odd[n]));
            }
        }
        for n in 0..WORDS {
            let both = flushed(even[n] + odd[n]);
            sums[n] = flushed(flushed(f32::from_bits(sums[n])) + both).to_bits();
        }
    }
}

/// [`dot_rows`] with fused multiply-adds of the CPU.
#[target_feature(enable = "avx512f,fma")]
fn dot_avx512(sums: &mut [Row; MAX_ROWS], a: &[Row], b: &[Row]) {
    dot_rows(sums, a, b);
}

/// The bf16 of the lower half, subnormal numbers as 0.
#[inline(always)]
fn low(word: u32) -> f32 {
    flushed(f32::from_bits(word << 16))
}

/// The bf16 of the upper half, subnormal numbers as 0.
#[inline(always)]
fn high(word: u32) -> f32 {
    flushed(f32::from_bits(word & 0xffff_0000))
}

/// A subnormal number becomes 0 of its sign.
#[inline(always)]
fn flushed(value: f32) -> f32 {
    const EXPONENT: u32 = 0x7f80_0000;
    const SIGN: u32 = 0x8000_0000;
    let bits = value.to_bits();
    f32::from_bits(if bits & EXPONENT == 0 { bits & SIGN } else { bits })
}
