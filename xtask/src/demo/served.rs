//! The server in this process, and requests to it over HTTP as any client makes them.

use std::io::{IsTerminal, stderr};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use gr00t_serve::life;
use gr00t_serve::options::ServeOptions;
use gr00t_serve::tools::Client;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use signal_hook::consts::SIGTERM;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Between two looks at a server that starts.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for an answer; a full-size model on a slow machine takes a part of it.
const ANSWER_TIME: Duration = Duration::from_mins(10);
/// Longest wait for the server's health.
const HEALTH_TIME: Duration = Duration::from_secs(5);
/// Longest wait for threads in the middle of something when the server ends.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// A server that runs. Ctrl-C and SIGTERM end it, also while it starts.
#[derive(Debug)]
pub(super) struct Served {
    runtime: Runtime,
    life: Option<JoinHandle<Result<()>>>,
    url: String,
    client: Client,
}

impl Served {
    /// Starts a server that will answer at `url`, through `listener`.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub(super) fn start(options: ServeOptions, listener: TcpListener, url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("runtime")?;
        let life = Some(runtime.spawn(life::run_on(options, listener)));
        Ok(Self { runtime, life, url: url.to_owned(), client: Client::new(url, ANSWER_TIME) })
    }

    /// Waits until the model is warm, and shows what the server is at.
    ///
    /// # Errors
    /// Why the server ended instead.
    pub(super) fn until_ready(&mut self) -> Result<()> {
        let mut shown = Shown::new();
        let client = Client::new(&self.url, HEALTH_TIME);
        loop {
            self.still_there()?;
            // nothing is answered in the first moments
            if let Ok((_, health)) = client.get("/health") {
                if health["status"] == "ok" {
                    return Ok(());
                }
                shown.phase(health["phase"].as_str().unwrap_or_default());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// The JSON that `path` gives.
    ///
    /// # Errors
    /// If it is not answered, or refused.
    pub(super) fn get(&mut self, path: &str) -> Result<Value> {
        let answer = self.client.get_ok(path);
        self.unless_ended(answer)
    }

    /// The JSON that `path` answers to `body`.
    ///
    /// # Errors
    /// If it is not answered, or refused.
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.client.post(path, body.to_string().as_bytes());
        match self.unless_ended(answer)? {
            (200, body) => Ok(body),
            (status, body) => bail!("POST {path}: {status} {body}"),
        }
    }

    /// `result`, unless it failed because the server has ended: then why it has.
    pub(super) fn unless_ended<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.still_there()?;
        }
        result
    }

    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// If it ends for another reason.
    pub(super) fn wait(mut self) -> Result<()> {
        let ended = self.life.take().map(|life| self.runtime.block_on(life));
        self.runtime.shutdown_timeout(LAST_WAIT);
        ended.transpose().context("server")?.unwrap_or(Ok(()))
    }

    /// Ends it as a signal would: what runs is finished, the device closed.
    pub(super) fn stop(mut self) {
        if let Some(life) = self.life.take().filter(|life| !life.is_finished()) {
            // the server listens for it from its first moment on; were it not to, the process ends, and with it the server
            if signal_hook::low_level::raise(SIGTERM).is_ok() {
                let _ = self.runtime.block_on(life);
            }
        }
        self.runtime.shutdown_timeout(LAST_WAIT);
    }

    fn still_there(&mut self) -> Result<()> {
        let Some(life) = self.life.take_if(|life| life.is_finished()) else { return Ok(()) };
        self.runtime.block_on(life).context("server")??;
        bail!("interrupted")
    }
}

/// What the server is at: one line that changes on a terminal, a line each elsewhere.
struct Shown {
    bar: ProgressBar,
    plain: bool,
    last: String,
    started: Instant,
}

impl Shown {
    fn new() -> Self {
        let plain = !stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(LOOK_AGAIN);
        Self { bar, plain, last: String::new(), started: Instant::now() }
    }

    fn phase(&mut self, phase: &str) {
        self.bar.set_message(phase.to_owned());
        // a bar in words is one phase, however far it is
        let name = phase.split(':').next().unwrap_or_default();
        if self.plain && name != self.last {
            eprintln!("{:>6.1} s  {phase}", self.started.elapsed().as_secs_f64());
            name.clone_into(&mut self.last);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
