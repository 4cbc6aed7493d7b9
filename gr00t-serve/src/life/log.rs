//! Log lines on standard error, one event each.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// Sends log lines of `level` and above to standard error. Panics become log lines too.
pub fn init(level: Level) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false)
        .with_writer(io::stderr)
        .finish();
    // a program that embeds the server may have one already
    let _ = tracing::subscriber::set_global_default(subscriber);
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// A subscriber that keeps its lines, for tests, and where it keeps them.
pub fn lines(level: Level) -> (impl tracing::Subscriber + Send + Sync, Lines) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    (subscriber, lines)
}

/// Log lines so far.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// The text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
