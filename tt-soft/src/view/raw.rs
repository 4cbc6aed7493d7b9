//! Views without their lifetimes, to carry into the closures of a kernel.

use super::{Dtype, Geometry};

/// A view without its lifetime, to carry into the closures of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct RawView {
    pub ptr: *const u8,
    pub dtype: Dtype,
    pub geometry: Geometry,
}

/// A mutable view without its lifetime.
#[derive(Clone, Copy)]
pub(crate) struct RawViewMut {
    pub ptr: *mut u8,
    pub dtype: Dtype,
    pub geometry: Geometry,
}

impl RawView {
    /// Address of element `at` of the buffer.
    ///
    /// # Safety
    /// `T` is the type of `dtype` or plain data of its size; the element is inside the buffer.
    pub(crate) unsafe fn element<T>(&self, at: usize) -> *const T {
        // A buffer of elements of this dtype is aligned for them.
        #[allow(clippy::cast_ptr_alignment)]
        let start = self.ptr.cast::<T>();
        // SAFETY: the caller's promise.
        unsafe { start.add(at) }
    }
}

impl RawViewMut {
    /// As [`RawView::element`].
    ///
    /// # Safety
    /// As [`RawView::element`].
    pub(crate) unsafe fn element<T>(&self, at: usize) -> *mut T {
        #[allow(clippy::cast_ptr_alignment)]
        let start = self.ptr.cast::<T>();
        // SAFETY: the caller's promise.
        unsafe { start.add(at) }
    }
}

// SAFETY: plain shared reads; the view that it was made from outlives the kernel call.
unsafe impl Send for RawView {}
// SAFETY: as above.
unsafe impl Sync for RawView {}
// SAFETY: members of a team write disjoint elements; each kernel says how it splits them.
unsafe impl Send for RawViewMut {}
// SAFETY: as above.
unsafe impl Sync for RawViewMut {}
