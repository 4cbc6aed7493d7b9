//! Rows of views as f32: how kernels load and store elements of any stride and dtype.

use crate::kernels::Kernels;
use crate::view::{Dtype, Geometry, RawView, RawViewMut};
use half::bf16;

/// Elements that element-wise kernels hold at a time, on the stack.
pub(crate) const CHUNK: usize = 512;

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
}

impl RawView {
    /// Loads row `row` of bf16 as pairs, the even element in the low half and 0 beyond an odd last one. Gives false, and loads
    /// nothing, where the elements are not bf16 or not neighbours.
    ///
    /// # Safety
    /// As [`RawView::load`], of a whole row; `out` has half as many words as the row has elements, rounded up.
    pub(crate) unsafe fn load_pairs(&self, row: usize, out: &mut [u32]) -> bool {
        let width = self.geometry.shape[3];
        if self.dtype != Dtype::Bf16 || !self.geometry.dense_rows() || width < 2 {
            return false;
        }
        // SAFETY: the view was checked when it was made: every element of a row lies in the buffer.
        let row =
            unsafe { std::slice::from_raw_parts(self.element::<u16>(self.geometry.row_start(row)), width) };
        let (pairs, rest) = row.as_chunks::<2>();
        for (word, [even, odd]) in out.iter_mut().zip(pairs) {
            *word = u32::from(*even) | u32::from(*odd) << 16;
        }
        if let (Some(word), [even]) = (out.last_mut(), rest) {
            *word = u32::from(*even);
        }
        true
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
