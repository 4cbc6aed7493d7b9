//! The thread that the card belongs to. Others send it what to do and wait for the answer.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::failed;
use super::lock::DeviceLock;
use super::state::Card;
use crate::error::{Result, TtError};
use crate::layout::CoreGrid;
use crate::metal::{Board, MetalOptions};

/// Number of a tensor, a weight or a trace.
pub(super) type Id = u64;

type Job = Box<dyn FnOnce(&mut Card) + Send>;

enum Message {
    Run(Job),
    Forget(Id),
    Close,
}

/// A number that the card's thread forgets when this is dropped.
#[derive(Debug)]
pub(super) struct Name {
    id: Id,
    sender: Sender<Message>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Run(_) => "Run",
            Self::Forget(_) => "Forget",
            Self::Close => "Close",
        })
    }
}

impl Name {
    pub(super) fn id(&self) -> Id {
        self.id
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // Where the thread has ended, so has the device with all that was on it.
        let _ = self.sender.send(Message::Forget(self.id));
    }
}

/// The card's thread. Dropping it closes the card and waits for that.
pub(super) struct Worker {
    sender: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Opens the card on a thread of its own; with it, what it is.
    pub(super) fn start(options: MetalOptions) -> Result<(Self, String)> {
        let (sender, receiver) = channel::<Message>();
        let (opened, outcome) = channel();
        let run = move || {
            let (mut card, _lock) = match open(&options) {
                Ok((card, lock, describe)) => {
                    let _ = opened.send(Ok(describe));
                    (card, lock)
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            for message in receiver {
                match message {
                    Message::Run(job) => job(&mut card),
                    Message::Forget(id) => card.forget(id),
                    Message::Close => break,
                }
            }
            card.close();
        };
        let thread = std::thread::Builder::new()
            .name("card".into())
            .spawn(run)
            .map_err(|e| TtError::Device { device: "metal", what: format!("no thread for the card: {e}") })?;
        let describe = outcome.recv().map_err(|_| ended())??;
        Ok((Self { sender, thread: Mutex::new(Some(thread)) }, describe))
    }

    /// Runs `job` on the card's thread and waits for its answer.
    pub(super) fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Card) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (answer, answered) = channel();
        let job: Job = Box::new(move |card| {
            let _ = answer.send(job(card));
        });
        self.sender.send(Message::Run(job)).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }

    /// Closes the card after what runs now and waits for that. Whoever waits for an answer, or asks later, gets an error.
    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.sender.send(Message::Close);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }

    /// A name for what the card's thread knows as `id`.
    pub(super) fn name(&self, id: Id) -> Name {
        Name { id, sender: self.sender.clone() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Names may outlive the card: what they send then goes nowhere.
        self.close();
    }
}

fn ended() -> TtError {
    TtError::Device { device: "metal", what: "the card's thread has ended".into() }
}

fn open(options: &MetalOptions) -> Result<(Card, DeviceLock, String)> {
    let card = options.device_id;
    let error = |what: String| TtError::Device { device: "metal", what };
    let device_id = i32::try_from(card).map_err(|_| error(format!("card {card} does not exist")))?;
    let lock = DeviceLock::take(card)?;
    let device = tt_sys::Device::open(tt_sys::OpenOptions {
        device_id,
        l1_small_size: options.l1_small_size,
        trace_region_size: options.trace_region_size,
    })
    .map_err(|e| error(format!("card {card}: {e}")))?;
    let facts = device.facts().map_err(failed("open_device"))?;
    let grid = CoreGrid::new(facts.grid.0, facts.grid.1);
    let board = Board::of(&facts.arch, grid, facts.dram_banks)?;
    let version = tt_sys::version().map_err(failed("open_device"))?;
    let describe = format!(
        "metal: card {card}, {} ({}), {}×{} cores, {} DRAM banks of {} MiB, {} MHz, tt-metal {version}",
        facts.arch,
        board.name,
        facts.grid.0,
        facts.grid.1,
        facts.dram_banks,
        facts.dram_bank_bytes >> 20,
        facts.clock_mhz
    );
    Ok((Card::new(device, facts, options.trace_region_size), lock, describe))
}
