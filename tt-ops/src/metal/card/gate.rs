//! Who may use the card: one thread at a time, and while one captures, only that one.

use std::collections::HashMap;
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
    /// Programs of the threads that run what they are about to capture.
    counts: Mutex<HashMap<ThreadId, u64>>,
}

/// While this is there, the programs of its thread are counted.
#[derive(Debug)]
pub(super) struct Counting<'a>(&'a Gate);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.counts().remove(&std::thread::current().id());
    }
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
    fn counts(&self) -> MutexGuard<'_, HashMap<ThreadId, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on this thread's programs are counted.
    pub(super) fn count(&self) -> Counting<'_> {
        self.counts().insert(std::thread::current().id(), 0);
        Counting(self)
    }

    /// This thread's count, where there is one.
    pub(super) fn counted(&self) -> Option<u64> {
        self.counts().get(&std::thread::current().id()).copied()
    }

    /// Adds to this thread's count.
    pub(super) fn add(&self, programs: u64) {
        if let Some(count) = self.counts().get_mut(&std::thread::current().id()) {
            *count += programs;
        }
    }

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

    /// Ends this thread's capture; other threads may go on once the returned turn is over.
    pub(super) fn end(&self) -> Result<(Turn<'_>, Recording)> {
        let mut turn = self.turn();
        let capture = turn.0.take();
        self.idle.notify_all();
        match capture {
            Some(capture) => Ok((turn, capture.recording)),
            None => Err(TtError::Capture("no capture to end".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_thread_counts_for_itself() {
        let gate = Gate::default();
        gate.add(7);
        assert_eq!(gate.counted(), None);
        let counting = gate.count();
        std::thread::scope(|scope| {
            scope.spawn(|| gate.add(5));
        });
        gate.add(2);
        gate.add(1);
        assert_eq!(gate.counted(), Some(3));
        drop(counting);
        assert_eq!(gate.counted(), None);
    }

    #[test]
    fn others_wait_until_the_turn_that_ended_a_capture_is_over() {
        let (gate, through) = (Gate::default(), AtomicBool::new(false));
        gate.outside_capture("a capture").unwrap().begin(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(gate.turn());
                through.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(50));
            let (turn, _) = gate.end().unwrap();
            std::thread::sleep(Duration::from_millis(50));
            assert!(!through.load(Ordering::SeqCst));
            drop(turn);
        });
        assert!(through.load(Ordering::SeqCst));
        assert!(gate.end().is_err());
    }
}
