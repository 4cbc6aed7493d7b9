//! Ctrl-C and `kill` as a flag that long work looks at, so that it can take away what it has half written.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Set once a signal to end has come. A second one ends the process as if nobody had listened.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on, for the rest of the process.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub(crate) fn listen() -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the second signal finds the flag set by the first.
            flag::register_conditional_default(signal, Arc::clone(&came)).context("signal handler")?;
            flag::register(signal, Arc::clone(&came)).context("signal handler")?;
        }
        Ok(Self(came))
    }

    /// Whether to go on.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
