//! Rows of views as f32: how kernels load and store elements of any stride and dtype.

use crate::kernels::Kernels;
use crate::view::{Dtype, Geometry, RawView, RawViewMut};
use half::bf16;

/// Elements that element-wise kernels hold at a time, on the stack.
pub(crate) const CHUNK: usize = 512;
/// Elements of a row that are converted at a time on their way into a product.
pub(crate) const PIECE: usize = 128;

impl Geometry {
    /// Number of rows: of index triples of the outer three dimensions.
    pub(crate) fn rows(&self) -> usize {
        self.shape[..3].iter().product()
    }

    /// Where row `row` starts, in elements.
    pub(crate) fn row_start(&self, row: usize) -> usize {
        let [_, b, c, _] = self.shape;
        let (outer, k) = (row / c, row % c);
        let (i, j) = (outer / b, outer % b);
        i * self.strides[0] + j * self.strides[1] + k * self.strides[2]
    }

    /// Are the elements of a row neighbours in memory?
    pub(crate) fn dense_rows(&self) -> bool {
        self.strides[3] == 1 || self.shape[3] <= 1
    }
}

impl RawView {
    /// Loads elements `start ..` of row `row` as f32 into all of `out`.
    ///
    /// # Safety
    /// The view's buffer is alive and not written by others; `row < rows` and `start + out.len() <= shape[3]`.
    pub(crate) unsafe fn load(&self, kernels: &Kernels, row: usize, start: usize, out: &mut [f32]) {
        let stride = if self.geometry.dense_rows() { 1 } else { self.geometry.strides[3] };
        let at = self.geometry.row_start(row) + start * stride;
        // SAFETY: the view was checked when it was made: every element of a row lies in the buffer.
        unsafe {
            match self.dtype {
                Dtype::F32 => {
                    let p = self.element::<f32>(at);
                    if stride == 1 {
                        out.copy_from_slice(std::slice::from_raw_parts(p, out.len()));
                    } else {
                        gather(out, |i| *p.add(i * stride));
                    }
                }
                Dtype::Bf16 => {
                    let p = self.element::<bf16>(at);
                    if stride == 1 {
                        (kernels.widen)(std::slice::from_raw_parts(p, out.len()), out);
                    } else {
                        gather(out, |i| (*p.add(i * stride)).to_f32());
                    }
                }
                Dtype::U32 => gather(out, |i| *self.element::<u32>(at + i * stride) as f32),
                Dtype::I32 => gather(out, |i| *self.element::<i32>(at + i * stride) as f32),
            }
        }
    }

    /// Loads row `row` as bf16 into `out`, rounding once, with 0 past its last element.
    ///
    /// # Safety
    /// The view's buffer is alive and not written by others; `row < rows` and `shape[3] <= out.len()`.
    pub(crate) unsafe fn load_bf16(&self, kernels: &Kernels, row: usize, out: &mut [bf16]) {
        let (values, padding) = out.split_at_mut(self.geometry.shape[3]);
        padding.fill(bf16::ZERO);
        if self.dtype == Dtype::Bf16 && self.geometry.dense_rows() {
            let start = self.geometry.row_start(row);
            // SAFETY: the view was checked when it was made: every element of a row lies in the buffer.
            let row = unsafe { std::slice::from_raw_parts(self.element::<bf16>(start), values.len()) };
            values.copy_from_slice(row);
            return;
        }
        let mut buf = [0f32; PIECE];
        for (piece, values) in values.chunks_mut(PIECE).enumerate() {
            let buf = &mut buf[..values.len()];
            // SAFETY: the caller's promise; the pieces are inside the row.
            unsafe { self.load(kernels, row, piece * PIECE, buf) };
            (kernels.narrow)(buf, values);
        }
    }
}

impl RawViewMut {
    /// Stores `data` as elements `start ..` of row `row`, rounding once. Integers are truncated and saturate.
    ///
    /// # Safety
    /// The view's buffer is alive and these elements are this thread's alone; `row < rows` and
    /// `start + data.len() <= shape[3]`.
    pub(crate) unsafe fn store(&self, kernels: &Kernels, row: usize, start: usize, data: &[f32]) {
        let stride = if self.geometry.dense_rows() { 1 } else { self.geometry.strides[3] };
        let at = self.geometry.row_start(row) + start * stride;
        // SAFETY: the view was checked when it was made: every element of a row lies in the buffer.
        unsafe {
            match self.dtype {
                Dtype::F32 => {
                    let p = self.element::<f32>(at);
                    if stride == 1 {
                        std::slice::from_raw_parts_mut(p, data.len()).copy_from_slice(data);
                    } else {
                        scatter(data, |i, v| *p.add(i * stride) = v);
                    }
                }
                Dtype::Bf16 => {
                    let p = self.element::<bf16>(at);
                    if stride == 1 {
                        (kernels.narrow)(data, std::slice::from_raw_parts_mut(p, data.len()));
                    } else {
                        scatter(data, |i, v| *p.add(i * stride) = bf16::from_f32(v));
                    }
                }
                Dtype::U32 => scatter(data, |i, v| *self.element::<u32>(at + i * stride) = v as u32),
                Dtype::I32 => scatter(data, |i, v| *self.element::<i32>(at + i * stride) = v as i32),
            }
        }
    }

    /// The same memory, to read.
    pub(crate) fn as_raw(&self) -> RawView {
        RawView { ptr: self.ptr, dtype: self.dtype, geometry: self.geometry }
    }
}

fn gather(out: &mut [f32], get: impl Fn(usize) -> f32) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = get(i);
    }
}

fn scatter(data: &[f32], mut put: impl FnMut(usize, f32)) {
    for (i, v) in data.iter().enumerate() {
        put(i, *v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_every_level, to_bf16, values};
    use crate::view::View;

    #[test]
    fn a_row_is_the_same_bf16_however_it_lies_and_has_zeros_after_it() {
        for width in [0, 1, 2, 63, PIECE, 2 * PIECE + 5] {
            let floats = values(3 * width, 1);
            let halves = to_bf16(&floats);
            let columns_first: Vec<bf16> = (0..3 * width).map(|i| halves[i % 3 * width + i / 3]).collect();
            let views = [
                View::contiguous(&floats, [1, 1, 3, width]).unwrap(),
                View::contiguous(&halves, [1, 1, 3, width]).unwrap(),
                View::contiguous(&columns_first, [1, 1, width, 3]).unwrap().permute([0, 1, 3, 2]).unwrap(),
            ];
            at_every_level(|engine| {
                for view in &views {
                    for row in 0..3 {
                        let mut out = vec![bf16::ONE; width + 3];
                        // SAFETY: the row is one of the view's, which is alive.
                        unsafe { view.raw().load_bf16(engine.kernels(), row, &mut out) };
                        assert_eq!(out[..width], halves[row * width..][..width]);
                        assert_eq!(out[width..], [bf16::ZERO; 3]);
                    }
                }
            });
        }
    }
}
