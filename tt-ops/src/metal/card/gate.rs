//! Who may use the card: one thread at a time, and while one captures, only that one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use super::state::Recording;
use crate::error::{Result, TtError};

/// Lets callers through.
#[derive(Debug, Default)]
pub(super) struct Gate {
    capture: Mutex<Option<Capture>>,
    /// Signalled when a capture ends.
    idle: Condvar,
}

/// A capture that is going on.
#[derive(Debug)]
struct Capture {
    thread: ThreadId,
    recording: Recording,
}

/// A caller's turn.
#[derive(Debug)]
pub(super) struct Turn<'a>(MutexGuard<'a, Option<Capture>>);

impl Turn<'_> {
    /// What this thread is recording.
    pub(super) fn recording(&mut self) -> Option<&mut Recording> {
        self.0.as_mut().map(|capture| &mut capture.recording)
    }

    /// From now on this thread records.
    pub(super) fn begin(mut self, keep_all: bool) {
        *self.0 = Some(Capture { thread: std::thread::current().id(), recording: Recording::new(keep_all) });
    }
}

impl Gate {
    /// Waits while another thread captures.
    pub(super) fn turn(&self) -> Turn<'_> {
        let this = std::thread::current().id();
        let busy = |capture: &mut Option<Capture>| capture.as_ref().is_some_and(|c| c.thread != this);
        let capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        Turn(self.idle.wait_while(capture, busy).unwrap_or_else(PoisonError::into_inner))
    }

    /// [`turn`](Self::turn) for what may not happen during a capture.
    pub(super) fn outside_capture(&self, what: &str) -> Result<Turn<'_>> {
        let turn = self.turn();
        if turn.0.is_some() {
            return Err(TtError::Capture(format!("{what} while a trace is being captured; do it before")));
        }
        Ok(turn)
    }

    /// Ends this thread's capture.
    pub(super) fn end(&self) -> Result<Recording> {
        let capture = self.turn().0.take();
        self.idle.notify_all();
        capture.map(|c| c.recording).ok_or_else(|| TtError::Capture("no capture to end".into()))
    }
}
