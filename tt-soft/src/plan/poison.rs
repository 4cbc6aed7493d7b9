//! Checked mode: memory that no tensor owns holds a NaN of its own, so that reading padding, leaving a result
//! unwritten or writing beyond it shows.

use half::bf16;

use crate::plan::operand::Operand;
use crate::view::Dtype;

/// Quiet NaNs with a payload of their own. The `bfloat16` one is the upper half of the `float32` one, so that
/// widening and narrowing keep it.
const POISON_BF16: u16 = 0x7fd5;
const POISON_F32: u32 = 0x7fd5_0000;
/// A token id or count that nothing means.
const POISON_INTEGER: u32 = 0xdead_beef;

fn pattern(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::Bf16 => u32::from(POISON_BF16) << 16 | u32::from(POISON_BF16),
        Dtype::F32 => POISON_F32,
        Dtype::U32 | Dtype::I32 => POISON_INTEGER,
    }
}

/// Fills a buffer.
pub(super) fn fill(bytes: &mut [u8], dtype: Dtype) {
    let pattern = pattern(dtype).to_ne_bytes();
    for word in bytes.chunks_mut(pattern.len()) {
        word.copy_from_slice(&pattern[..word.len()]);
    }
}

/// Poisons everything of a buffer but the elements of `operand`.
pub(super) fn fill_padding(bytes: &mut [u8], operand: &Operand) {
    let keep = mask(bytes.len(), operand);
    let size = operand.dtype.bytes();
    let pattern = pattern(operand.dtype).to_ne_bytes();
    for (element, keep) in bytes.chunks_exact_mut(size).zip(keep) {
        if !keep {
            element.copy_from_slice(&pattern[..size]);
        }
    }
}

/// What a look at a result found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// An element holds poison: it was not written, or computed from padding.
    Poison([usize; 4]),
    /// An element is a NaN that is not poison.
    Nan([usize; 4]),
    /// Memory that belongs to no element was written.
    Outside(usize),
}

/// Looks at a result in a buffer that was filled with poison before.
pub(super) fn inspect(bytes: &[u8], operand: &Operand) -> Option<Finding> {
    let size = operand.dtype.bytes();
    let element = |at: usize| bytes.get(at * size..(at + 1) * size).unwrap_or_default();
    let mut nan = None;
    for index in indices(operand.shape) {
        let at = place(operand, index);
        match operand.dtype {
            Dtype::F32 => {
                let bits = u32::from_ne_bytes(element(at).try_into().unwrap_or_default());
                if bits & 0x7fff_0000 == POISON_F32 {
                    return Some(Finding::Poison(index));
                }
                if f32::from_bits(bits).is_nan() {
                    nan.get_or_insert(index);
                }
            }
            Dtype::Bf16 => {
                let bits = u16::from_ne_bytes(element(at).try_into().unwrap_or_default());
                if bits & 0x7fff == POISON_BF16 {
                    return Some(Finding::Poison(index));
                }
                if bf16::from_bits(bits).is_nan() {
                    nan.get_or_insert(index);
                }
            }
            Dtype::U32 | Dtype::I32 => {}
        }
    }
    let pattern = pattern(operand.dtype).to_ne_bytes();
    let touched = |(at, inside): (usize, bool)| (!inside && element(at) != &pattern[..size]).then_some(at);
    if let Some(at) = mask(bytes.len(), operand).into_iter().enumerate().find_map(touched) {
        return Some(Finding::Outside(at));
    }
    nan.map(Finding::Nan)
}

/// Whether any element of an operand is NaN or infinite.
pub(super) fn has_special(bytes: &[u8], operand: &Operand) -> bool {
    let size = operand.dtype.bytes();
    let mut values = indices(operand.shape).map(|index| {
        let at = place(operand, index);
        let element = bytes.get(at * size..(at + 1) * size).unwrap_or_default();
        match operand.dtype {
            Dtype::F32 => f32::from_ne_bytes(element.try_into().unwrap_or_default()),
            Dtype::Bf16 => bf16::from_ne_bytes(element.try_into().unwrap_or_default()).to_f32(),
            Dtype::U32 | Dtype::I32 => 0.0,
        }
    });
    values.any(|v| !v.is_finite())
}

fn place(operand: &Operand, index: [usize; 4]) -> usize {
    operand.offset + (0..4).map(|d| index[d] * operand.strides[d]).sum::<usize>()
}

/// For each element of a buffer, whether it belongs to `operand`.
fn mask(bytes: usize, operand: &Operand) -> Vec<bool> {
    let mut mask = vec![false; bytes / operand.dtype.bytes()];
    for index in indices(operand.shape) {
        if let Some(inside) = mask.get_mut(place(operand, index)) {
            *inside = true;
        }
    }
    mask
}

fn indices(shape: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    let [d0, d1, d2, d3] = shape;
    (0..d0).flat_map(move |a| {
        (0..d1).flat_map(move |b| (0..d2).flat_map(move |c| (0..d3).map(move |d| [a, b, c, d])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::operand::{Arrangement, BufferId};

    fn buffer() -> (Vec<u8>, Operand) {
        let (operand, bytes) =
            Operand::fresh(BufferId::Recorded(0), Dtype::Bf16, [1, 1, 2, 5], Arrangement::Rows);
        let mut buffer = vec![0; bytes];
        fill(&mut buffer, Dtype::Bf16);
        (buffer, operand)
    }

    fn write(buffer: &mut [u8], at: usize, value: f32) {
        buffer[2 * at..2 * at + 2].copy_from_slice(&bf16::from_f32(value).to_ne_bytes());
    }

    #[test]
    fn a_whole_result_passes() {
        let (mut buffer, operand) = buffer();
        for row in 0..2 {
            for column in 0..5 {
                write(&mut buffer, row * 32 + column, 1.0);
            }
        }
        assert_eq!(inspect(&buffer, &operand), None);
        write(&mut buffer, 3, f32::NAN);
        assert_eq!(inspect(&buffer, &operand), Some(Finding::Nan([0, 0, 0, 3])));
    }

    #[test]
    fn an_unwritten_element_is_found() {
        let (mut buffer, operand) = buffer();
        for at in [0, 1, 2, 3, 4, 32, 33, 34, 36] {
            write(&mut buffer, at, 0.0);
        }
        assert_eq!(inspect(&buffer, &operand), Some(Finding::Poison([0, 0, 1, 3])));
    }

    #[test]
    fn a_write_into_padding_is_found() {
        let (mut buffer, operand) = buffer();
        for at in [0, 1, 2, 3, 4, 5, 32, 33, 34, 35, 36] {
            write(&mut buffer, at, 0.0);
        }
        assert_eq!(inspect(&buffer, &operand), Some(Finding::Outside(5)));
    }

    #[test]
    fn poison_survives_a_change_of_width() {
        let wide = f32::from_bits(POISON_F32);
        assert_eq!(bf16::from_f32(wide).to_bits(), POISON_BF16);
        assert_eq!(bf16::from_bits(POISON_BF16).to_f32().to_bits(), POISON_F32);
    }
}
