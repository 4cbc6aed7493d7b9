//! Where the server is in its life.

/// The service's state, which health routes show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Loading or warming up; the text says what it is at.
    Starting(String),
    /// Warm.
    Ready,
    /// The last request failed on the device; the next one that succeeds makes it ready again.
    Failed(String),
    /// Going down: what runs is finished, nothing is taken.
    Stopping,
}

impl State {
    /// The word that `/health` shows: `starting`, `ok`, `failed` or `stopping`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting(_) => "starting",
            Self::Ready => "ok",
            Self::Failed(_) => "failed",
            Self::Stopping => "stopping",
        }
    }
}
