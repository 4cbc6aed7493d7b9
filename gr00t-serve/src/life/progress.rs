//! Boot progress: lines in the shape that launchers read, and one at least every ten seconds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use gr00t_model::CancelToken;
use tokio::task::JoinSet;
use tracing::info;

use crate::service::Service;

/// A line is repeated after this long without another.
const SILENCE: Duration = Duration::from_secs(8);
/// A bar is drawn again at every twentieth.
const BAR_STEPS: usize = 20;
/// Characters of a bar.
const BAR_WIDTH: usize = 10;

/// What the boot is at. A handle.
#[derive(Debug, Clone)]
pub struct Progress {
    service: Option<Service>,
    cancel: CancelToken,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    line: String,
    said: Instant,
    started: Instant,
    step: usize,
}

impl Progress {
    /// Nothing said yet. `/health` of `service` shows what is said.
    pub fn new(service: Option<Service>) -> Self {
        let now = Instant::now();
        let shared = Shared { line: "starting".into(), said: now, started: now, step: 0 };
        Self { service, cancel: CancelToken::new(), shared: Arc::new(Mutex::new(shared)) }
    }

    /// Asks for the boot to be cut short.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Whether the boot may go on.
    ///
    /// # Errors
    /// Once it was asked to stop.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(!self.cancel.is_cancelled(), "told to stop while starting");
        Ok(())
    }

    /// One line.
    pub fn say(&self, line: &str) {
        let mut shared = self.lock();
        shared.said = Instant::now();
        info!("{line}");
        line.clone_into(&mut shared.line);
        shared.step = 0;
        self.tell(line);
    }

    /// `done` of `total` of `what`, as tqdm draws it: `what: 40%|####      | 80/200`. Not every call is a line.
    pub fn bar(&self, what: &str, done: usize, total: usize) {
        let total = total.max(1);
        let done = done.min(total);
        let line = format!(
            "{what}: {}%|{:width$}| {done}/{total}",
            done * 100 / total,
            "#".repeat(done * BAR_WIDTH / total),
            width = BAR_WIDTH
        );
        let mut shared = self.lock();
        let step = done * BAR_STEPS / total;
        if step > shared.step || shared.said.elapsed() >= SILENCE {
            shared.step = step;
            shared.said = Instant::now();
            info!("{line}");
        }
        self.tell(&line);
        shared.line = line;
    }

    /// `done` of `total` bytes of `file`, from the hub.
    pub fn download(&self, file: &str, done: u64, total: u64) {
        let what = format!("Downloading weights for model: {file}");
        if !self.lock().line.starts_with(&format!("{what}:")) {
            self.say(&format!("{what}: {total} bytes"));
        }
        let bytes = |count| usize::try_from(count).unwrap_or(usize::MAX);
        self.bar(&what, bytes(done), bytes(total));
    }

    /// Repeats the last line where nothing new is said, until what it returns is dropped.
    pub fn beat(&self) -> JoinSet<()> {
        let progress = self.clone();
        let mut beat = JoinSet::new();
        beat.spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs(1));
            loop {
                tick.tick().await;
                progress.repeat_if_silent(SILENCE);
            }
        });
        beat
    }

    fn repeat_if_silent(&self, silence: Duration) {
        let mut shared = self.lock();
        if shared.said.elapsed() >= silence {
            shared.said = Instant::now();
            info!("{} ({:.0} s since the start)", shared.line, shared.started.elapsed().as_secs_f64());
        }
    }

    fn tell(&self, line: &str) {
        if let Some(service) = &self.service {
            service.set_phase(line);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_download_begins_anew() {
        let progress = Progress::new(None);
        progress.download("model.safetensors.index.json", 9, 9);
        assert_eq!(progress.lock().step, BAR_STEPS);
        // whose name the other's begins with
        progress.download("model.safetensors", 1, 20);
        let shared = progress.lock();
        let line = "Downloading weights for model: model.safetensors: 5%|          | 1/20";
        assert_eq!((shared.line.as_str(), shared.step), (line, 1));
    }
}
