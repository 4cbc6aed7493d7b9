//! Memory of a device: numbered buffers that are recycled, and one arena that all plans share.

use std::collections::BTreeMap;

use crate::memory::AlignedBuf;

/// Number of a heap buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeapId(u32);

/// Sizes are rounded up to this, so that buffers of like tensors can be recycled.
const GRANULE: usize = 256;
/// Freed buffers are kept up to this many bytes.
const POOL_BYTES: usize = 16 << 20;

/// Numbered buffers and the arena. Freed buffers are kept for the next allocation of their size, within limits: where
/// tensors come in ever new sizes, few of them would find a taker.
#[derive(Debug, Default)]
pub struct Heap {
    buffers: Vec<Option<AlignedBuf>>,
    unused: Vec<u32>,
    pool: BTreeMap<usize, Vec<AlignedBuf>>,
    arena: AlignedBuf,
    /// Bytes of `buffers`, those that are taken out included.
    live: usize,
    /// Bytes of `pool`.
    pooled: usize,
}

impl Heap {
    /// An empty heap.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of at least `bytes` bytes, with contents of earlier use.
    pub fn allocate(&mut self, bytes: usize) -> HeapId {
        let bytes = bytes.next_multiple_of(GRANULE);
        let recycled = self.pool.get_mut(&bytes).and_then(Vec::pop);
        if recycled.is_some() {
            self.pooled -= bytes;
        }
        self.live += bytes;
        let buffer = recycled.unwrap_or_else(|| AlignedBuf::zeroed(bytes));
        let number = self.unused.pop().unwrap_or_else(|| {
            self.buffers.push(None);
            (self.buffers.len() - 1) as u32
        });
        self.buffers[number as usize] = Some(buffer);
        HeapId(number)
    }

    /// Gives a buffer back. Its number may be used again.
    pub fn free(&mut self, id: HeapId) {
        if let Some(buffer) = self.buffers.get_mut(id.0 as usize).and_then(Option::take) {
            self.unused.push(id.0);
            self.live -= buffer.len();
            self.pooled += buffer.len();
            self.pool.entry(buffer.len()).or_default().push(buffer);
            if self.pooled > POOL_BYTES {
                self.trim();
            }
        }
    }

    /// Returns recycled memory to the system.
    pub fn trim(&mut self) {
        self.pool.clear();
        self.pooled = 0;
    }

    /// Bytes in live buffers.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        self.live
    }

    /// Bytes kept for recycling.
    #[must_use]
    pub fn pooled_bytes(&self) -> usize {
        self.pooled
    }

    /// Bytes of the arena.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Makes the arena at least `bytes` long. Its contents do not survive.
    pub(crate) fn reserve_arena(&mut self, bytes: usize) {
        if self.arena.len() < bytes {
            self.arena = AlignedBuf::default();
            self.arena = AlignedBuf::zeroed(bytes.next_multiple_of(GRANULE));
        }
    }

    /// A buffer's bytes; empty where there is no such buffer.
    #[must_use]
    pub fn bytes(&self, id: HeapId) -> &[u8] {
        self.buffers.get(id.0 as usize).and_then(Option::as_ref).map_or(&[], AlignedBuf::as_bytes)
    }

    /// A buffer's bytes, writable.
    pub(crate) fn bytes_mut(&mut self, id: HeapId) -> &mut [u8] {
        self.buffers.get_mut(id.0 as usize).and_then(Option::as_mut).map_or(&mut [], AlignedBuf::as_bytes_mut)
    }

    /// Takes a buffer out so that it can be written while others are read; [`put_back`](Self::put_back) returns it.
    pub(super) fn take(&mut self, id: HeapId) -> AlignedBuf {
        self.buffers.get_mut(id.0 as usize).and_then(Option::take).unwrap_or_default()
    }

    pub(super) fn put_back(&mut self, id: HeapId, buffer: AlignedBuf) {
        if let Some(place) = self.buffers.get_mut(id.0 as usize) {
            *place = Some(buffer);
        }
    }

    pub(super) fn take_arena(&mut self) -> AlignedBuf {
        std::mem::take(&mut self.arena)
    }

    pub(super) fn put_back_arena(&mut self, arena: AlignedBuf) {
        self.arena = arena;
    }

    pub(super) fn arena(&self) -> &[u8] {
        self.arena.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_buffers_serve_the_next_allocation_of_their_size() {
        let mut heap = Heap::new();
        let first = heap.allocate(1000);
        let address = heap.bytes(first).as_ptr();
        heap.free(first);
        assert_eq!((heap.live_bytes(), heap.pooled_bytes()), (0, 1024));
        let second = heap.allocate(1001);
        assert_eq!(heap.bytes(second).as_ptr(), address);
        assert_eq!(heap.pooled_bytes(), 0);
    }

    #[test]
    fn buffers_of_ever_new_sizes_are_not_kept_for_ever() {
        let mut heap = Heap::new();
        for i in 0..200 {
            let id = heap.allocate((1 << 20) + i * GRANULE);
            heap.free(id);
            assert!(heap.pooled_bytes() <= POOL_BYTES);
        }
        assert_eq!(heap.live_bytes(), 0);
    }

    #[test]
    fn addresses_survive_other_allocations() {
        let mut heap = Heap::new();
        let first = heap.allocate(64);
        let address = heap.bytes(first).as_ptr();
        let many: Vec<HeapId> = (0..100).map(|_| heap.allocate(64)).collect();
        heap.reserve_arena(1 << 20);
        assert_eq!(heap.bytes(first).as_ptr(), address);
        for id in many {
            heap.free(id);
        }
        assert_eq!(heap.bytes(first).as_ptr(), address);
    }
}
