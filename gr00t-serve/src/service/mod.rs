//! [`Service`]: what every protocol calls. Host work of several requests runs side by side; the device takes one at a time, from
//! a queue with a bound.

mod engine;
mod error;
mod prepared;
mod request;
mod robot;
mod state;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use gr00t_host::noise::Noise;
use gr00t_model::CancelToken;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::metrics::Metrics;

pub use engine::{Engine, Model};
pub use error::ServiceError;
use prepared::Prepared;
pub use request::{Reply, Request, Rules, Timings};
pub use robot::{Camera, Key, Robot};
pub use state::State;

/// Bounds of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Requests that may wait while one is on the device.
    pub queue: usize,
    /// Longest time from a request's arrival to its answer.
    pub deadline: Duration,
    /// Noise of requests that bring none.
    pub noise: Noise,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue: 16, deadline: Duration::from_secs(30), noise: Noise::default() }
    }
}

/// One policy, shared by all protocols. A handle: clones are the same service.
#[derive(Debug, Clone)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    engine: RwLock<Option<Arc<Engine>>>,
    state: watch::Sender<State>,
    /// One permit per request that is admitted.
    admission: Arc<Semaphore>,
    /// The device: one permit, first come first served.
    device: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// Tells the device work of a request that nobody waits for it any more.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Service {
    /// A service without a model: starting.
    pub fn new(limits: Limits, metrics: Arc<Metrics>) -> Self {
        let (state, _) = watch::channel(State::Starting("starting".into()));
        Self(Arc::new(Inner {
            admission: Arc::new(Semaphore::new(limits.queue.saturating_add(1).min(Semaphore::MAX_PERMITS))),
            device: Arc::new(Semaphore::new(1)),
            engine: RwLock::new(None),
            state,
            limits,
            metrics,
        }))
    }

    /// Says what the boot is at.
    pub fn set_phase(&self, phase: &str) {
        self.0.state.send_if_modified(|state| {
            let starting = matches!(state, State::Starting(_));
            if starting {
                *state = State::Starting(phase.to_owned());
            }
            starting
        });
    }

    /// Puts the engine in place without opening the door: [`warm_up`](Self::warm_up) works from here on.
    pub fn install(&self, engine: Engine) {
        *self.0.engine.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(engine));
    }

    /// Opens the door, unless the server is going down already.
    pub fn open(&self) {
        self.0.state.send_if_modified(|state| {
            let starting = matches!(state, State::Starting(_));
            if starting {
                *state = State::Ready;
            }
            starting
        });
    }

    /// Takes no more requests. What is admitted is finished.
    pub fn stop(&self) {
        self.0.state.send_replace(State::Stopping);
    }

    /// Waits until no request is admitted any more, at most `limit`. Whether all were finished.
    pub async fn idle(&self, limit: Duration) -> bool {
        let all = u32::try_from(self.0.limits.queue.saturating_add(1)).unwrap_or(u32::MAX);
        tokio::time::timeout(limit, self.0.admission.acquire_many(all)).await.is_ok()
    }

    /// Lets go of the model, and so of its traces and device tensors, once the last request has.
    pub fn release(&self) {
        self.0.engine.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The state now.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// Returns once the server is going down. For the loops of protocols.
    pub async fn stopping(&self) {
        let mut state = self.0.state.subscribe();
        // the sender lives as long as this handle
        let _ = state.wait_for(|state| *state == State::Stopping).await;
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Counters that all protocols share.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    /// What the policy reads and writes.
    ///
    /// # Errors
    /// [`ServiceError::Starting`] before the model is there, [`ServiceError::Stopping`] after.
    pub fn robot(&self) -> Result<Arc<Robot>, ServiceError> {
        Ok(Arc::clone(self.engine()?.robot()))
    }

    /// Requests that are admitted and not answered yet.
    pub fn in_flight(&self) -> usize {
        self.0.limits.queue.saturating_add(1).saturating_sub(self.0.admission.available_permits())
    }

    /// The next actions.
    ///
    /// Dropping the future drops the request: before its turn it never reaches the device, in its turn the device stops before the
    /// next stage. The same request gives the same bytes, through whichever protocol it came.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn predict(&self, request: Request) -> Result<Reply, ServiceError> {
        self.predict_from(move |_| Ok(request)).await
    }

    /// [`predict`](Self::predict) of a request that is yet to be read from a client's bytes. `read` runs where it holds nobody up,
    /// under the same bounds as the rest of the request.
    ///
    /// # Errors
    /// [`ServiceError`], also what `read` gives.
    pub async fn predict_from<F>(&self, read: F) -> Result<Reply, ServiceError>
    where
        F: FnOnce(&Robot) -> Result<Request, ServiceError> + Send + 'static,
    {
        let started = Instant::now();
        let result = self.bounded(|admitted| self.run(read, started, admitted)).await;
        self.0.metrics.finished(&result);
        self.note(&result);
        result
    }

    /// [`predict`](Self::predict) of observations that came in one message, one after the other: one place in the queue and one
    /// deadline for all of them, while others get the device in between.
    ///
    /// # Errors
    /// [`ServiceError`] of the first that has one; the rest is not run.
    pub async fn predict_all(&self, requests: Vec<Request>) -> Result<Vec<Reply>, ServiceError> {
        let result = self
            .bounded(|admitted| async move {
                let mut replies = Vec::with_capacity(requests.len());
                for request in requests {
                    let result = self.run(move |_| Ok(request), Instant::now(), Arc::clone(&admitted)).await;
                    if result.is_ok() {
                        self.0.metrics.finished(&result);
                    }
                    self.note(&result);
                    replies.push(result?);
                }
                Ok(replies)
            })
            .await;
        result.inspect_err(|error| self.0.metrics.finished(&Err(error.clone())))
    }

    /// [`predict`](Self::predict) before the door is open.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn warm_up(&self, request: Request) -> Result<Reply, ServiceError> {
        let admitted = Arc::new(self.admit()?);
        self.run(move |_| Ok(request), Instant::now(), admitted).await
    }

    /// `work` within the bounds: door, queue, deadline.
    async fn bounded<T, W: Future<Output = Result<T, ServiceError>>>(
        &self,
        work: impl FnOnce(Arc<OwnedSemaphorePermit>) -> W,
    ) -> Result<T, ServiceError> {
        match self.state() {
            State::Starting(_) => return Err(ServiceError::Starting),
            State::Stopping => return Err(ServiceError::Stopping),
            State::Ready | State::Failed(_) => {}
        }
        let admitted = Arc::new(self.admit()?);
        let limit = self.0.limits.deadline;
        tokio::time::timeout(limit, work(admitted)).await.unwrap_or(Err(ServiceError::Deadline(limit)))
    }

    fn admit(&self) -> Result<OwnedSemaphorePermit, ServiceError> {
        let limit = self.0.limits.queue;
        Arc::clone(&self.0.admission)
            .try_acquire_owned()
            .map_err(|_| ServiceError::Overloaded { waiting: self.in_flight().saturating_sub(1), limit })
    }

    async fn run<F>(
        &self,
        read: F,
        started: Instant,
        admitted: Arc<OwnedSemaphorePermit>,
    ) -> Result<Reply, ServiceError>
    where
        F: FnOnce(&Robot) -> Result<Request, ServiceError> + Send + 'static,
    {
        let engine = self.engine()?;
        let cancel = CancelToken::new();
        let _cancel_on_drop = CancelOnDrop(cancel.clone());
        let (reader, its_cancel, default_noise) =
            (Arc::clone(&engine), cancel.clone(), self.0.limits.noise.clone());
        let prepared = blocking(move || Prepared::new(&reader, read, default_noise, &its_cancel)).await??;
        if prepared.is_default_prompt {
            self.0.metrics.default_prompt();
        }

        let queued = Instant::now();
        let turn = {
            let _waiting = self.0.metrics.waiting();
            Arc::clone(&self.0.device).acquire_owned().await.map_err(|_| ServiceError::Stopping)?
        };
        let queue = queued.elapsed();
        let mut reply = blocking(move || {
            // held until the device is done, even if nobody waits for the reply
            let _admitted = admitted;
            prepared.run(&engine, &cancel, turn)
        })
        .await??;
        reply.timings.queue = queue;
        reply.timings.total = started.elapsed();
        Ok(reply)
    }

    fn engine(&self) -> Result<Arc<Engine>, ServiceError> {
        let engine = self.0.engine.read().unwrap_or_else(PoisonError::into_inner);
        engine.clone().ok_or_else(|| match self.state() {
            State::Stopping => ServiceError::Stopping,
            _ => ServiceError::Starting,
        })
    }

    /// Follows the device's health.
    fn note(&self, result: &Result<Reply, ServiceError>) {
        self.0.state.send_if_modified(|state| match (&*state, result) {
            (State::Failed(_), Ok(_)) => {
                *state = State::Ready;
                true
            }
            (State::Ready, Err(error)) if error.is_of_device() => {
                *state = State::Failed(error.to_string());
                true
            }
            _ => false,
        });
    }
}

/// Work that would hold up the sockets, on a thread of its own.
///
/// # Errors
/// [`ServiceError::Device`] if it panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    spawn_blocking(work)
        .await
        .map_err(|error| if error.is_panic() { ServiceError::panicked() } else { ServiceError::Stopping })
}

#[cfg(test)]
mod tests {
    use super::blocking;

    #[tokio::test]
    async fn work_that_panics_is_an_answer_of_500() {
        assert_eq!(blocking(|| 7).await, Ok(7));
        let answer = blocking::<()>(|| panic!("as broken work would")).await;
        assert_eq!(answer.map_err(|error| error.http_status()), Err(500));
    }
}
