//! A client's bytes, counted from one message to the next: tungstenite gives a message only once all of it is in memory.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use crate::room::Share;

/// The share of the message on its way; `None` if nothing is kept of what comes. A handle.
#[derive(Debug, Clone)]
pub(super) struct Counter(Arc<Mutex<Option<Share>>>);

impl Counter {
    pub(super) fn new(share: Share) -> Self {
        Self(Arc::new(Mutex::new(Some(share))))
    }

    /// The share of a message that is complete.
    pub(super) fn take(&self) -> Option<Share> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(Share::take)
    }

    /// Counts no more.
    pub(super) fn stop(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let mut share = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(share) = share.as_mut() else { return Ok(()) };
        if share.grow(bytes) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::OutOfMemory, share.refusal()))
    }
}

/// `S`, whose reading fails where there is no room.
#[derive(Debug)]
pub(super) struct Counted<S> {
    pub(super) stream: S,
    pub(super) counter: Counter,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                Poll::Ready(self.counter.count(buffer.filled().len().saturating_sub(before)))
            }
            other => other,
        }
    }
}
