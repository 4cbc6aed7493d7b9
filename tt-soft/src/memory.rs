//! Memory that kernels and weights live in: 64-byte aligned, zeroed, in huge pages where it is large.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every buffer: a cache line, an AVX-512 register, a row of an AMX tile.
pub const ALIGNMENT: usize = 64;
/// Size of a huge page; buffers of at least this size are aligned to it and advised to use huge pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// What a large buffer asks the kernel for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// 2 MiB.
    Huge,
    /// The smallest; to measure what huge ones are worth.
    Small,
}

/// A fixed-size buffer of bytes, aligned to 64 bytes (2 MiB and `MADV_HUGEPAGE` from 2 MiB on), zero at first.
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    backing: Backing,
}

/// Where the memory came from, and so how it is given back.
enum Backing {
    /// There is none.
    Empty,
    Heap(Layout),
    /// A mapping of its own: pages are zero without being touched, so that the first touch can be of a huge page.
    #[cfg(all(target_os = "linux", not(miri)))]
    Mapping {
        base: *mut libc::c_void,
        len: usize,
    },
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
        Self::zeroed_in(len, Pages::Huge)
    }

    /// A zeroed buffer of `len` bytes in pages of one kind, where the kernel takes advice.
    ///
    /// # Panics
    /// As [`AlignedBuf::zeroed`].
    #[must_use]
    pub fn zeroed_in(len: usize, pages: Pages) -> Self {
        if len == 0 {
            return Self { ptr: NonNull::<Line>::dangling().cast(), len, backing: Backing::Empty };
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Some((ptr, backing)) = map_pages(len, pages) {
            return Self { ptr, len, backing };
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = pages;
        let Ok(layout) = Layout::from_size_align(len, ALIGNMENT) else {
            panic!("a buffer of {len} bytes is larger than an allocation can be");
        };
        // SAFETY: `layout` has a non-zero size.
        let Some(ptr) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        Self { ptr, len, backing: Backing::Heap(layout) }
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
        match self.backing {
            Backing::Empty => {}
            // SAFETY: `ptr` came from `alloc_zeroed` with this layout and is freed once.
            Backing::Heap(layout) => unsafe { dealloc(self.ptr.as_ptr(), layout) },
            // SAFETY: the mapping is this buffer's own and is unmapped once.
            #[cfg(all(target_os = "linux", not(miri)))]
            Backing::Mapping { base, len } => unsafe {
                libc::munmap(base, len);
            },
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

/// A mapping whose usable part starts on a huge page, advised to use huge pages or not to; `None` for a smaller buffer, or where the
/// kernel refuses (the heap then decides).
#[cfg(all(target_os = "linux", not(miri)))]
fn map_pages(len: usize, pages: Pages) -> Option<(NonNull<u8>, Backing)> {
    if len < HUGE_PAGE {
        return None;
    }
    let total = len.checked_next_multiple_of(HUGE_PAGE)?.checked_add(HUGE_PAGE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping, at an address that the kernel chooses.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let advice = match pages {
        Pages::Huge => libc::MADV_HUGEPAGE,
        Pages::Small => libc::MADV_NOHUGEPAGE,
    };
    let skip = base.addr().next_multiple_of(HUGE_PAGE) - base.addr();
    // SAFETY: `skip < HUGE_PAGE`, so that `len` bytes from there on lie inside the mapping. The advice changes no contents;
    // its failure is harmless, the kernel then keeps small pages.
    let start = unsafe {
        let start = base.byte_add(skip);
        libc::madvise(start, total - HUGE_PAGE, advice);
        start
    };
    Some((NonNull::new(start.cast())?, Backing::Mapping { base, len: total }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        let sizes = [0, 1, 63, 64, 4097, HUGE_PAGE, HUGE_PAGE + 5];
        for (len, pages) in sizes.into_iter().flat_map(|len| [(len, Pages::Huge), (len, Pages::Small)]) {
            let buf = AlignedBuf::zeroed_in(len, pages);
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
