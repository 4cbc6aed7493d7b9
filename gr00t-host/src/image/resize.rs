//! Antialiased bilinear resize, bit-equal to torch's on float32: horizontal pass, then vertical, each output
//! accumulated by fused multiply-adds in tap order.
//!
//! Both passes run over contiguous floats. The horizontal one takes four floats of the interleaved row at a
//! time (a pixel and the next one's red, which is overwritten), the vertical one a whole row. Rows pass
//! through a ring as high as the vertical filter, so the intermediate picture stays in the first-level cache.

use super::taps::Taps;
use super::{CropBox, Frame};

const CHANNELS: usize = 3;
/// Floats per step of the horizontal pass: one SSE or NEON register.
const LANES: usize = 4;

/// Taps of both axes for one pair of sizes.
pub(super) struct Resize {
    horizontal: Taps,
    vertical: Taps,
    out_width: usize,
}

impl Resize {
    /// From `in_size` to `out_size`, both (width, height), all at least 1.
    pub(super) fn new(in_size: (usize, usize), out_size: (usize, usize)) -> Self {
        Self {
            horizontal: Taps::new(in_size.0, out_size.0),
            vertical: Taps::new(in_size.1, out_size.1),
            out_width: out_size.0,
        }
    }

    /// Calls `sink` for each output row, from the top, with its `[out_width, 3]` floats in [0, 1].
    ///
    /// `crop` lies within `frame` and has the size that the taps were made for.
    pub(super) fn run(&self, frame: &Frame, crop: CropBox, sink: impl FnMut(&[f32])) {
        // AVX2 with FMA where the CPU has them. Elsewhere `f32::mul_add` is a library call: slower, same bits.
        pulp::Arch::new().dispatch(Passes { resize: self, frame, crop, sink });
    }
}

struct Passes<'a, F> {
    resize: &'a Resize,
    frame: &'a Frame,
    crop: CropBox,
    sink: F,
}

impl<F: FnMut(&[f32])> pulp::NullaryFnOnce for Passes<'_, F> {
    type Output = ();

    // Inlined into the dispatcher, so that the loops are compiled for its instruction set.
    #[inline(always)]
    fn call(mut self) {
        let Resize { horizontal, vertical, out_width } = self.resize;
        let row_bytes = self.frame.width() * CHANNELS;
        let first_byte = self.crop.left * CHANNELS;
        let crop_bytes = self.crop.width * CHANNELS;
        let row_floats = out_width * CHANNELS;
        let slot_floats = row_floats + LANES - CHANNELS;

        let mut unit = vec![0.0; crop_bytes + LANES - CHANNELS];
        let mut ring = vec![0.0; vertical.per_output() * slot_floats];
        let mut output = vec![0.0; row_floats];
        let mut rows = self.frame.rgb().chunks_exact(row_bytes).skip(self.crop.top).enumerate().peekable();
        for (start, weights) in vertical.iter() {
            while let Some((row, bytes)) = rows.next_if(|(row, _)| *row < start + weights.len()) {
                if row < start {
                    continue;
                }
                to_unit(&bytes[first_byte..first_byte + crop_bytes], &mut unit);
                let slot = (row % weights.len()) * slot_floats;
                horizontal_pass(horizontal, &unit, &mut ring[slot..slot + slot_floats]);
            }
            vertical_pass(start, weights, &ring, slot_floats, &mut output);
            (self.sink)(&output);
        }
    }
}

/// `bytes / 255`.
#[inline(always)]
fn to_unit(bytes: &[u8], unit: &mut [f32]) {
    for (float, byte) in unit.iter_mut().zip(bytes) {
        *float = f32::from(*byte) / 255.0;
    }
}

/// One row: `source` is `[width, 3]` and a float of padding, `output` `[out_width, 3]` and a float of padding.
#[inline(always)]
fn horizontal_pass(taps: &Taps, source: &[f32], output: &mut [f32]) {
    // A literal count unrolls the taps. Up to 8 covers frames of up to 3.5 times the output's size.
    match taps.per_output() {
        2 => horizontal_taps(2, taps, source, output),
        3 => horizontal_taps(3, taps, source, output),
        4 => horizontal_taps(4, taps, source, output),
        5 => horizontal_taps(5, taps, source, output),
        6 => horizontal_taps(6, taps, source, output),
        7 => horizontal_taps(7, taps, source, output),
        8 => horizontal_taps(8, taps, source, output),
        count => horizontal_taps(count, taps, source, output),
    }
}

/// [`horizontal_pass`] with `count` taps per output. The four sums are written out: as an array they are not
/// kept in one register.
#[inline(always)]
fn horizontal_taps(count: usize, taps: &Taps, source: &[f32], output: &mut [f32]) {
    for (index, (start, weights)) in taps.iter().enumerate() {
        let window = &source[start * CHANNELS..][..count * CHANNELS + LANES - CHANNELS];
        let (mut red, mut green, mut blue, mut next) = (0.0, 0.0, 0.0, 0.0);
        for (tap, weight) in weights[..count].iter().enumerate() {
            let pixel = &window[tap * CHANNELS..][..LANES];
            // The first product is added to 0, which rounds as the product alone.
            red = pixel[0].mul_add(*weight, red);
            green = pixel[1].mul_add(*weight, green);
            blue = pixel[2].mul_add(*weight, blue);
            next = pixel[3].mul_add(*weight, next);
        }
        let out = &mut output[index * CHANNELS..][..LANES];
        out[0] = red;
        out[1] = green;
        out[2] = blue;
        out[3] = next;
    }
}

/// One output row from the rows `start..start + weights.len()`, row `r` in slot `r % weights.len()` of `ring`.
#[inline(always)]
fn vertical_pass(start: usize, weights: &[f32], ring: &[f32], slot_floats: usize, output: &mut [f32]) {
    output.fill(0.0);
    for (tap, weight) in weights.iter().enumerate() {
        let slot = ((start + tap) % weights.len()) * slot_floats;
        for (sum, value) in output.iter_mut().zip(&ring[slot..]) {
            *sum = value.mul_add(*weight, *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::NullaryFnOnce;

    use super::{Frame, Passes, Resize};
    use crate::image::CropBox;

    /// Without the dispatcher `f32::mul_add` is the library call that CPUs without FMA use.
    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let (width, height) = (97, 61);
        let rgb = (0..width * height * 3).map(|i| (i * i % 251) as u8).collect();
        let frame = Frame::new(width, height, rgb).unwrap();
        let crop = CropBox { top: 3, left: 5, height: 53, width: 91 };
        for out_size in [(40, 30), (91, 53), (120, 17), (1, 1)] {
            let resize = Resize::new((crop.width, crop.height), out_size);
            let (mut dispatched, mut plain) = (Vec::new(), Vec::new());
            resize.run(&frame, crop, |row| dispatched.extend(row.iter().map(|v| v.to_bits())));
            let sink = |row: &[f32]| plain.extend(row.iter().map(|v| v.to_bits()));
            Passes { resize: &resize, frame: &frame, crop, sink }.call();
            assert_eq!(dispatched.len(), out_size.0 * out_size.1 * 3);
            assert!(dispatched == plain, "{out_size:?}");
        }
    }
}
