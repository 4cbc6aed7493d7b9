//! Decoding of the AMX instructions that the kernels use: VEX with map 0F38, 128 bits, W0.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2.3 (VEX) and the
//! instructions' own pages.

/// What the real instruction would refuse with `#UD` or `#GP`, or what this emulation lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault(pub(super) &'static str);

/// An AMX instruction with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    LoadConfig(Memory),
    Release,
    Zero {
        tile: usize,
    },
    /// `tileloadd` or `tileloaddt1`, which differ in a hint to the caches.
    Load {
        tile: usize,
        from: Memory,
    },
    Store {
        tile: usize,
        to: Memory,
    },
    /// `tdpbf16ps`.
    Dot {
        sum: usize,
        a: usize,
        b: usize,
    },
}

/// A memory operand: general registers by number. For a tile the index register, shifted, is the stride of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) base: Option<u8>,
    pub(super) index: Option<u8>,
    pub(super) shift: u8,
    pub(super) displacement: i32,
}

/// The mandatory prefix that a VEX prefix stands for, in its two bits.
mod prefix {
    pub(super) const NONE: u8 = 0;
    pub(super) const P66: u8 = 1;
    pub(super) const F3: u8 = 2;
    pub(super) const F2: u8 = 3;
}

impl Instruction {
    /// The instruction at `byte(0)` and its length; `None` for one that is not AMX's.
    pub(super) fn decode(byte: impl Fn(usize) -> u8) -> Result<Option<(Self, usize)>, Fault> {
        const VEX3: u8 = 0xc4;
        const MAP_0F38: u8 = 2;
        const W_OR_L: u8 = 0x84;
        const CONFIG: u8 = 0x49;
        const MOVE: u8 = 0x4b;
        const DOT: [u8; 3] = [0x5c, 0x5e, 0x6c];
        if byte(0) != VEX3 || byte(1) & 0x1f != MAP_0F38 || byte(2) & W_OR_L != 0 {
            return Ok(None);
        }
        let opcode = byte(3);
        if ![CONFIG, MOVE].contains(&opcode) && !DOT.contains(&opcode) {
            return Ok(None);
        }
        // R, X, B and vvvv are stored inverted.
        let extension = |bit: u8| u8::from(byte(1) & bit == 0) << 3;
        let (r, x, b) = (extension(0x80), extension(0x40), extension(0x20));
        let (third, prefix) = (!byte(2) >> 3 & 0xf, byte(2) & 3);
        let modrm = byte(4);
        let (in_register, reg, rm) = (modrm >> 6 == 3, modrm >> 3 & 7 | r, modrm & 7 | b);
        let memory = || memory(&byte, x, b);
        let tile = |number: u8| match number {
            0..8 => Ok(usize::from(number)),
            _ => Err(Fault("#UD: there are 8 tiles")),
        };
        if opcode != DOT[0] && third != 0 {
            return Err(Fault("#UD: VEX.vvvv must be 1111b"));
        }
        Ok(Some(match (opcode, prefix, in_register) {
            (CONFIG, prefix::NONE, false) if reg == 0 => {
                let (memory, length) = memory()?;
                (Self::LoadConfig(memory), length)
            }
            (CONFIG, prefix::NONE, true) if modrm == 0xc0 => (Self::Release, 5),
            (CONFIG, prefix::F2, true) if rm == 0 => (Self::Zero { tile: tile(reg)? }, 5),
            (MOVE, prefix::F2 | prefix::P66 | prefix::F3, false) => {
                if modrm & 7 != 4 {
                    return Err(Fault("#UD: a tile's memory operand has a SIB byte"));
                }
                let (memory, length) = memory()?;
                let tile = tile(reg)?;
                let load = prefix != prefix::F3;
                let whole =
                    if load { Self::Load { tile, from: memory } } else { Self::Store { tile, to: memory } };
                (whole, length)
            }
            (0x5c, prefix::F3, true) => (Self::Dot { sum: tile(reg)?, a: tile(rm)?, b: tile(third)? }, 5),
            _ => return Err(Fault("an AMX instruction that the emulation lacks")),
        }))
    }
}

/// The memory operand whose ModRM byte is `byte(4)`, and the instruction's length.
fn memory(byte: &impl Fn(usize) -> u8, x: u8, b: u8) -> Result<(Memory, usize), Fault> {
    const SIB: u8 = 4;
    const RSP: u8 = 4;
    const RBP: u8 = 5;
    let (kind, rm) = (byte(4) >> 6, byte(4) & 7);
    let mut length = 5;
    let mut operand = Memory { base: Some(rm | b), index: None, shift: 0, displacement: 0 };
    let mut low_base = rm;
    if rm == SIB {
        let sib = byte(length);
        length += 1;
        low_base = sib & 7;
        let index = sib >> 3 & 7 | x;
        operand.base = Some(low_base | b);
        operand.index = (index != RSP).then_some(index);
        operand.shift = sib >> 6;
    }
    let displacement = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| byte(at + i)));
    match kind {
        0 if low_base == RBP && rm != SIB => return Err(Fault("RIP-relative operands are not emulated")),
        0 if low_base == RBP => {
            operand.base = None;
            operand.displacement = displacement(length);
            length += 4;
        }
        0 => {}
        1 => {
            operand.displacement = i32::from(byte(length) as i8);
            length += 1;
        }
        _ => {
            operand.displacement = displacement(length);
            length += 4;
        }
    }
    Ok((operand, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Option<(Instruction, usize)>, Fault> {
        Instruction::decode(|i| bytes.get(i).copied().unwrap_or(0xcc))
    }

    #[test]
    fn encodings_of_an_assembler_are_understood() {
        let far = Memory { base: Some(5), index: Some(14), shift: 3, displacement: 0x1000_0000 };
        let near = Memory { base: Some(0), index: Some(1), shift: 0, displacement: 64 };
        let cases: [(&[u8], Instruction); 8] = [
            (&[0xc4, 0xe2, 0x78, 0x49, 0xc0], Instruction::Release),
            (&[0xc4, 0xe2, 0x7b, 0x49, 0xf0], Instruction::Zero { tile: 6 }),
            (&[0xc4, 0xe2, 0x5a, 0x5c, 0xf5], Instruction::Dot { sum: 6, a: 5, b: 4 }),
            (&[0xc4, 0xa2, 0x7b, 0x4b, 0xb4, 0xf5, 0, 0, 0, 0x10], Instruction::Load { tile: 6, from: far }),
            (&[0xc4, 0xa2, 0x79, 0x4b, 0xb4, 0xf5, 0, 0, 0, 0x10], Instruction::Load { tile: 6, from: far }),
            (&[0xc4, 0xa2, 0x7a, 0x4b, 0xb4, 0xf5, 0, 0, 0, 0x10], Instruction::Store { tile: 6, to: far }),
            (&[0xc4, 0xe2, 0x7b, 0x4b, 0x5c, 0x08, 0x40], Instruction::Load { tile: 3, from: near }),
            (
                &[0xc4, 0xc2, 0x78, 0x49, 0x04, 0x24],
                Instruction::LoadConfig(Memory { base: Some(12), index: None, shift: 0, displacement: 0 }),
            ),
        ];
        for (bytes, want) in cases {
            assert_eq!(decoded(bytes), Ok(Some((want, bytes.len()))), "{bytes:x?}");
        }
    }

    #[test]
    fn other_instructions_are_not_taken() {
        // ud2; vpermq (W1); vfmadd231ps (another opcode); tdpbf16ps with 256 bits
        for bytes in [
            &[0x0f, 0x0b][..],
            &[0xc4, 0xe3, 0xfd, 0x00, 0xc0, 0],
            &[0xc4, 0xe2, 0x75, 0xb8, 0xc2],
            &[0xc4, 0xe2, 0x5e, 0x5c, 0xf5],
        ] {
            assert_eq!(decoded(bytes), Ok(None), "{bytes:x?}");
        }
    }

    #[test]
    fn malformed_operands_are_faults() {
        for (bytes, fault) in [
            // tileloadd tmm6, [rax] without a SIB byte
            (&[0xc4, 0xe2, 0x7b, 0x4b, 0x30][..], "#UD: a tile's memory operand has a SIB byte"),
            // tmm14
            (&[0xc4, 0x62, 0x7b, 0x49, 0xf0], "#UD: there are 8 tiles"),
            // tilezero with a second source
            (&[0xc4, 0xe2, 0x73, 0x49, 0xf0], "#UD: VEX.vvvv must be 1111b"),
            // tdpbssd
            (&[0xc4, 0xe2, 0x7b, 0x5e, 0xf5], "an AMX instruction that the emulation lacks"),
            (&[0xc4, 0xe2, 0x78, 0x49, 0x05, 0, 0, 0, 0], "RIP-relative operands are not emulated"),
        ] {
            assert_eq!(decoded(bytes), Err(Fault(fault)), "{bytes:x?}");
        }
    }
}
