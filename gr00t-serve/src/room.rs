//! How many bytes of requests may be in memory over all connections of a port, whoever sent them: each connection may send as
//! much as the largest message, but not all of them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest messages that may be there at once.
const MESSAGES: usize = 4;
/// Bytes of each message that are not counted: whatever strangers send, a camera's frame gets in.
const FREE_BYTES: usize = 1 << 20;

/// The room of one port. A handle.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    left: AtomicUsize,
    most: usize,
}

impl Room {
    /// Room where no message has more than `max_message_bytes`.
    pub(crate) fn of(max_message_bytes: usize) -> Self {
        let most = max_message_bytes.saturating_mul(MESSAGES);
        Self(Arc::new(Inner { left: AtomicUsize::new(most), most }))
    }

    /// A share, for one message.
    pub(crate) fn share(&self) -> Share {
        Share { room: self.clone(), bytes: 0 }
    }

    /// Why there is none.
    pub(crate) fn refusal(&self) -> String {
        format!("requests of {} bytes are in memory already, try again later", self.0.most)
    }
}

/// What one message takes up, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Room,
    bytes: usize,
}

impl Share {
    /// Makes it one of `bytes`. Whether there was room; if not, it is as before.
    #[must_use]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let left = &self.room.0.left;
        let (before, after) = (counted(self.bytes), counted(bytes));
        let fits = if after > before {
            let take = |left: usize| left.checked_sub(after - before);
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
        } else {
            left.fetch_add(before - after, Ordering::AcqRel);
            true
        };
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Makes it larger by `more`. Whether there was room.
    #[must_use]
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        self.set(self.bytes.saturating_add(more))
    }

    /// What it holds, leaving an empty one for the next message.
    pub(crate) fn take(&mut self) -> Self {
        let empty = self.room.share();
        std::mem::replace(self, empty)
    }

    /// Why there is no room.
    pub(crate) fn refusal(&self) -> String {
        self.room.refusal()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.0.left.fetch_add(counted(self.bytes), Ordering::AcqRel);
    }
}

fn counted(bytes: usize) -> usize {
    bytes.saturating_sub(FREE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{FREE_BYTES, Room};

    #[test]
    fn shares_fill_the_room_and_give_it_back() {
        let room = Room::of(10 << 20);
        let mut shares: Vec<_> = (0..4).map(|_| room.share()).collect();
        assert!(shares.iter_mut().all(|share| share.grow(10 << 20) && share.grow(FREE_BYTES)));
        let mut late = room.share();
        assert!(late.grow(FREE_BYTES), "small ones get in");
        assert!(!late.grow(1) && late.refusal().contains("41943040"));
        let taken = shares.iter_mut().map(super::Share::take).next();
        assert!(!late.grow(1), "what was taken out is still there");
        drop(taken);
        assert!(late.set(FREE_BYTES + 1) && late.set(11 << 20) && !late.grow(1));
        drop(late);
        assert!(room.share().grow(11 << 20));
    }
}
