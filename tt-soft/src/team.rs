//! A team of persistent threads that run one job together: the caller is member 0, the others spin briefly and then park.

use crate::error::{Error, Result};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

/// Environment variable with the number of threads.
pub const THREADS_VARIABLE: &str = "GR00T_THREADS";
/// Most members that a team may have.
pub const MAX_THREADS: usize = 256;
/// Polls before a thread parks, when every member has a CPU of its own (50 to 150 us, by the CPU's `pause`)
/// and when not.
const SPINS: u32 = 4000;
const SPINS_OVERSUBSCRIBED: u32 = 50;

type Job<'a> = &'a (dyn Fn(usize, usize) + Sync);

thread_local! {
    /// Is this thread inside a job?
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
}

/// Threads that run jobs together. A job is called once per member with (member, members) and must do the same
/// work whatever `members` is. One caller at a time: others wait.
pub struct ThreadTeam {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the one caller whose job runs.
    caller: Mutex<()>,
}

struct Shared {
    /// The job of the current epoch; written by the caller only while no worker is inside an epoch.
    job: UnsafeCell<Option<Job<'static>>>,
    /// Counts jobs; a change is the signal to start.
    epoch: AtomicU32,
    /// Workers that have not finished the job.
    running: AtomicUsize,
    stop: AtomicBool,
    sleeping: Vec<AtomicBool>,
    /// The caller, if it may be parked.
    waiting: Mutex<Option<Thread>>,
    caller_sleeps: AtomicBool,
    panic: Mutex<Option<(usize, String)>>,
    spins: u32,
}

// SAFETY: `job` is the only field that is not `Sync`. It is written by the caller while `running` is 0 and every
// worker waits for a new epoch, and read by workers between the release of that epoch and their decrement of `running`.
unsafe impl Sync for Shared {}
// SAFETY: the job is `Sync`, so it may be called from any thread.
unsafe impl Send for Shared {}

impl ThreadTeam {
    /// A team of `threads` members, the caller included.
    ///
    /// # Errors
    /// If `threads` is 0 or above [`MAX_THREADS`], or a thread does not start.
    pub fn new(threads: usize) -> Result<Self> {
        if !(1..=MAX_THREADS).contains(&threads) {
            let wanted = format!("1 to {MAX_THREADS}");
            return Err(Error::Range { op: "thread team", what: "number of threads", got: threads, wanted });
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            job: UnsafeCell::new(None),
            epoch: AtomicU32::new(0),
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            sleeping: (1..threads).map(|_| AtomicBool::new(false)).collect(),
            waiting: Mutex::new(None),
            caller_sleeps: AtomicBool::new(false),
            panic: Mutex::new(None),
            spins: if threads <= cpus { SPINS } else { SPINS_OVERSUBSCRIBED },
        });
        let mut team = Self { shared, workers: Vec::with_capacity(threads - 1), caller: Mutex::new(()) };
        for member in 1..threads {
            let shared = Arc::clone(&team.shared);
            let worker = std::thread::Builder::new()
                .name(format!("soft-{member}"))
                .spawn(move || work(&shared, member, threads))
                .map_err(|source| Error::Spawn { member, source })?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    /// A team of as many members as [`THREADS_VARIABLE`] says, or as there are CPUs.
    ///
    /// # Errors
    /// If the variable is not a number of threads that [`ThreadTeam::new`] takes.
    pub fn from_env() -> Result<Self> {
        Self::new(threads_from_env()?)
    }

    /// Number of members, the caller included.
    #[must_use]
    pub fn members(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(member, members)` once on every member and returns when all are done. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::Panic`] if the job panicked on a member; the team stays usable. [`Error::Nested`] from inside a job.
    pub fn run(&self, job: Job<'_>) -> Result<()> {
        if IN_JOB.get() {
            return Err(Error::Nested);
        }
        let _caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let members = self.members();
        let shared = &*self.shared;
        if members > 1 {
            // SAFETY: only the lifetime changes. `run` does not return before `running` is 0, after which no
            // worker touches the job.
            let job = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
            // SAFETY: the caller lock is held and all workers wait for the next epoch, so no one else looks.
            unsafe { *shared.job.get() = Some(job) };
            shared.running.store(members - 1, Ordering::Relaxed);
            // SeqCst orders this store before the loads of `sleeping`: either a worker sees the epoch or we see it sleep.
            shared.epoch.fetch_add(1, Ordering::SeqCst);
            for (asleep, worker) in shared.sleeping.iter().zip(&self.workers) {
                if asleep.load(Ordering::SeqCst) {
                    worker.thread().unpark();
                }
            }
        }
        shared.call(job, 0, members);
        if members > 1 {
            shared.wait_for_workers();
        }
        match shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some((member, message)) => Err(Error::Panic { member, message }),
            None => Ok(()),
        }
    }
}

/// The number of threads that [`THREADS_VARIABLE`] asks for, the number of CPUs if it is unset or empty.
///
/// # Errors
/// If it is not a number from 1 to [`MAX_THREADS`].
pub fn threads_from_env() -> Result<usize> {
    let text = std::env::var_os(THREADS_VARIABLE).unwrap_or_default();
    let text = text.to_string_lossy();
    if text.is_empty() {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS));
    }
    text.trim().parse().ok().filter(|n| (1..=MAX_THREADS).contains(n)).ok_or_else(|| Error::Environment {
        variable: THREADS_VARIABLE,
        got: text.into_owned(),
        wanted: format!("a number from 1 to {MAX_THREADS}"),
    })
}

impl Shared {
    /// Calls the job and keeps the first panic.
    fn call(&self, job: Job<'_>, member: usize, members: usize) {
        IN_JOB.set(true);
        let outcome = catch_unwind(AssertUnwindSafe(|| job(member, members)));
        IN_JOB.set(false);
        if let Err(payload) = outcome {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| (member, message_of(payload.as_ref())));
        }
    }

    fn wait_for_workers(&self) {
        for _ in 0..self.spins {
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
        self.caller_sleeps.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) != 0 {
            std::thread::park();
        }
        self.caller_sleeps.store(false, Ordering::SeqCst);
    }

    /// The last worker wakes the caller.
    fn finish(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.caller_sleeps.load(Ordering::SeqCst) {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(caller) = waiting {
                caller.unpark();
            }
        }
    }

    /// Waits until the epoch is not `seen` and returns it.
    fn next_epoch(&self, seen: u32, member: usize) -> u32 {
        for _ in 0..self.spins {
            let epoch = self.epoch.load(Ordering::Acquire);
            if epoch != seen {
                return epoch;
            }
            std::hint::spin_loop();
        }
        let asleep = &self.sleeping[member - 1];
        asleep.store(true, Ordering::SeqCst);
        let epoch = loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                break epoch;
            }
            std::thread::park();
        };
        asleep.store(false, Ordering::SeqCst);
        epoch
    }
}

fn work(shared: &Shared, member: usize, members: usize) {
    let mut seen = 0;
    loop {
        seen = shared.next_epoch(seen, member);
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        // SAFETY: a new epoch means that the caller has written the job and waits for `running` to reach 0.
        if let Some(job) = unsafe { *shared.job.get() } {
            shared.call(job, member, members);
        }
        shared.finish();
    }
}

pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl Drop for ThreadTeam {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of jobs, so it can only end well.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for ThreadTeam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadTeam").field("members", &self.members()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_runs_each_job_once() {
        for threads in [1, 2, 3, 7, 64] {
            let team = ThreadTeam::new(threads).unwrap();
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..200 {
                team.run(&|member, members| {
                    assert_eq!(members, threads);
                    counts[member].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 200), "{threads}");
        }
    }

    #[test]
    fn a_panic_in_a_member_is_an_error_and_the_team_lives_on() {
        let team = ThreadTeam::new(3).unwrap();
        for guilty in 0..3 {
            let error =
                team.run(&|member, _| assert!(member != guilty, "member {member} gave up")).unwrap_err();
            assert!(
                matches!(&error, Error::Panic { member, message } if *member == guilty && message.contains("gave up"))
            );
            team.run(&|_, _| ()).unwrap();
        }
    }

    #[test]
    fn callers_take_turns() {
        let team = ThreadTeam::new(2).unwrap();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let job = |member: usize, _: usize| {
                            if member == 0 {
                                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                                assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                            }
                        };
                        team.run(&job).unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_job_cannot_start_another() {
        let team = ThreadTeam::new(2).unwrap();
        let nested = AtomicUsize::new(0);
        team.run(&|_, _| {
            if matches!(team.run(&|_, _| ()), Err(Error::Nested)) {
                nested.fetch_add(1, Ordering::Relaxed);
            }
        })
        .unwrap();
        assert_eq!(nested.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn sizes_are_checked() {
        assert!(ThreadTeam::new(0).is_err());
        assert!(ThreadTeam::new(MAX_THREADS + 1).is_err());
    }
}
