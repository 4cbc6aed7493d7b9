//! Memory that kernels and weights live in: 64-byte aligned, zeroed, in huge pages where it is large.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every buffer: a cache line, an AVX-512 register, a row of an AMX tile.
pub const ALIGNMENT: usize = 64;
/// Size of a huge page; buffers of at least this size are aligned to it and advised to use huge pages.
pub const HUGE_PAGE: usize = 2 << 20;

/// A fixed-size buffer of bytes, aligned to 64 bytes (2 MiB and `MADV_HUGEPAGE` from 2 MiB on), zero at first.
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    layout: Option<Layout>,
}

// SAFETY: the buffer owns its memory and has no interior mutability.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed buffer of `len` bytes.
    ///
    /// # Panics
    /// If `len` is larger than an allocation can be (`isize::MAX`). Aborts when memory is exhausted, as `Vec` does.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        if len == 0 {
            return Self { ptr: NonNull::<Line>::dangling().cast(), len, layout: None };
        }
        let alignment = if len >= HUGE_PAGE { HUGE_PAGE } else { ALIGNMENT };
        let Ok(layout) = Layout::from_size_align(len, alignment) else {
            panic!("a buffer of {len} bytes is larger than an allocation can be");
        };
        // SAFETY: `layout` has a non-zero size.
        let Some(ptr) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        advise_huge_pages(ptr, len);
        Self { ptr, len, layout: Some(layout) }
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is the size zero?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes (zeroed at allocation) for the life of `self`.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes, writable.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// The whole elements of type `T` that fit, `T` being plain data of at most 64-byte alignment.
    #[must_use]
    pub fn as_slice<T: bytemuck::Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.as_bytes()[..whole::<T>(self.len)])
    }

    /// As [`AlignedBuf::as_slice`], writable.
    pub fn as_mut_slice<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        let len = whole::<T>(self.len);
        bytemuck::cast_slice_mut(&mut self.as_bytes_mut()[..len])
    }

    /// Address of the first byte, for buffers that kernels hand out to several threads in disjoint parts.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }
}

/// Gives the alignment of an empty buffer's dangling pointer.
#[repr(align(64))]
struct Line;

fn whole<T>(bytes: usize) -> usize {
    let size = std::mem::size_of::<T>().max(1);
    bytes / size * size
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: `ptr` came from `alloc_zeroed` with this layout and is freed once.
            unsafe { dealloc(self.ptr.as_ptr(), layout) };
        }
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len);
        copy.as_bytes_mut().copy_from_slice(self.as_bytes());
        copy
    }
}

impl Default for AlignedBuf {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlignedBuf").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages(ptr: NonNull<u8>, len: usize) {
    if len >= HUGE_PAGE {
        // SAFETY: the range lies within one live allocation that starts on a page; the advice changes no contents.
        // Its failure is harmless: the kernel then keeps small pages.
        unsafe { libc::madvise(ptr.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for len in [0, 1, 63, 64, 4097, HUGE_PAGE, HUGE_PAGE + 5] {
            let buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.as_bytes().as_ptr().addr() % ALIGNMENT, 0, "{len}");
            assert!(buf.as_bytes().iter().all(|&b| b == 0));
            assert_eq!(buf.len(), len);
        }
    }

    #[test]
    fn typed_slices_leave_out_a_partial_element() {
        let mut buf = AlignedBuf::zeroed(11);
        buf.as_mut_slice::<f32>().fill(1.5);
        assert_eq!(buf.as_slice::<f32>(), [1.5, 1.5]);
        assert_eq!(buf.as_bytes()[8..], [0, 0, 0]);
        assert_eq!(buf.clone().as_bytes(), buf.as_bytes());
    }
}
