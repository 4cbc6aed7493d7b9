//! The engine: a thread team, an instruction set level and scratch memory, which every kernel is given.

use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::kernels::Kernels;
use crate::memory::AlignedBuf;
use crate::team::{ThreadTeam, threads_from_env};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Least work, in elements read or multiplied, that is worth waking another thread.
const WORK_PER_MEMBER: usize = 16 * 1024;

/// What kernels run on. Kernels of one engine run one after the other, whoever calls.
#[derive(Debug)]
pub struct Engine {
    team: ThreadTeam,
    isa: Isa,
    kernels: &'static Kernels,
    scratch: Mutex<Scratch>,
}

#[derive(Debug)]
struct Scratch {
    shared: AlignedBuf,
    members: Vec<AlignedBuf>,
}

impl Engine {
    /// An engine with `threads` threads (the caller included) at a level of this CPU.
    ///
    /// # Errors
    /// If the CPU lacks the level or the team cannot be made.
    pub fn new(isa: Isa, threads: usize) -> Result<Self> {
        if !isa.is_available() {
            return Err(Error::IsaUnavailable { got: isa, available: Isa::available_names() });
        }
        let team = ThreadTeam::new(threads)?;
        let members = (0..threads).map(|_| AlignedBuf::default()).collect();
        let scratch = Mutex::new(Scratch { shared: AlignedBuf::default(), members });
        Ok(Self { team, isa, kernels: Kernels::of(isa), scratch })
    }

    /// An engine as `GR00T_SOFT_ISA` and `GR00T_THREADS` say, by default with all that the CPU has.
    ///
    /// # Errors
    /// If a variable has a value that cannot be used.
    pub fn from_env() -> Result<Self> {
        Self::new(Isa::from_env()?, threads_from_env()?)
    }

    /// The same engine, multiplying bf16 in fp32 FMA even where the CPU's bf16 dot product is faster. The dot product
    /// takes subnormal numbers as 0 and adds two products at a time; otherwise the two are equally accurate.
    #[must_use]
    pub fn with_fp32_products(mut self) -> Self {
        self.kernels = Kernels::with_fp32_products(self.isa);
        self
    }

    /// The same engine with another table.
    #[cfg(test)]
    pub(crate) fn with_kernels(mut self, kernels: &'static Kernels) -> Self {
        self.kernels = kernels;
        self
    }

    /// The instruction set level.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Number of threads, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.team.members()
    }

    /// The thread team, for work beside the kernels.
    #[must_use]
    pub fn team(&self) -> &ThreadTeam {
        &self.team
    }

    /// Scratch bytes held now. Grows to the largest need seen and never shrinks.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.shared.len() + scratch.members.iter().map(AlignedBuf::len).sum::<usize>()
    }

    pub(crate) fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    /// Takes the engine for one kernel call.
    pub(crate) fn session(&self) -> Session<'_> {
        Session { engine: self, scratch: self.scratch.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// What one dispatch needs.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    /// Jobs to split over the members.
    pub jobs: usize,
    /// Elements that all jobs together work on; decides how many members are woken.
    pub work: usize,
    /// Floats of scratch per member.
    pub floats: usize,
}

/// Exclusive use of an engine during one kernel call.
pub(crate) struct Session<'e> {
    engine: &'e Engine,
    scratch: MutexGuard<'e, Scratch>,
}

/// An address that members of a team share. They must write disjoint parts.
pub(crate) struct SharedPtr<T>(pub *mut T);

impl<T> Clone for SharedPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedPtr<T> {}

// SAFETY: only an address; every use of it is an unsafe block of its own.
unsafe impl<T> Send for SharedPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    /// The address; a method, so that closures capture the wrapper.
    pub(crate) fn get(self) -> *mut T {
        self.0
    }
}

impl Session<'_> {
    /// Shared scratch of `len` 32-bit words, 64-byte aligned, with contents of earlier calls.
    pub(crate) fn shared(&mut self, len: usize) -> SharedPtr<u32> {
        grow(&mut self.scratch.shared, len);
        SharedPtr(self.scratch.shared.as_mut_ptr().cast())
    }

    /// How many members a dispatch of this much work uses.
    pub(crate) fn members_for(&self, work: usize) -> usize {
        (work / WORK_PER_MEMBER).clamp(1, self.engine.team.members())
    }

    /// Splits the jobs evenly; calls `job(part, scratch)` with each member's part and its own scratch.
    pub(crate) fn run(&mut self, need: Need, job: &(dyn Fn(Range<usize>, &mut [f32]) + Sync)) -> Result<()> {
        let used = self.members_for(need.work).min(need.jobs.max(1));
        self.run_members(used, need.floats, &|member, scratch| {
            let part = share(need.jobs, member, used);
            if !part.is_empty() {
                job(part, scratch);
            }
        })
    }

    /// Calls `job(member, scratch)` on `used` members.
    pub(crate) fn run_members(
        &mut self,
        used: usize,
        floats: usize,
        job: &(dyn Fn(usize, &mut [f32]) + Sync),
    ) -> Result<()> {
        for buf in self.scratch.members.iter_mut().take(used) {
            grow(buf, floats);
        }
        let buffers = SharedPtr(self.scratch.members.as_mut_ptr());
        let run = |member: usize| {
            // SAFETY: `member < used <= members.len()`, each member takes only its own buffer, and `self` is
            // borrowed until all of them are done.
            let buffer = unsafe { &mut *buffers.get().add(member) };
            job(member, &mut buffer.as_mut_slice::<f32>()[..floats]);
        };
        if used == 1 {
            // On the calling thread; a panic must be an error here as well.
            return std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(0))).map_err(|payload| {
                Error::Panic { member: 0, message: crate::team::message_of(payload.as_ref()) }
            });
        }
        self.engine.team.run(&|member, _| {
            if member < used {
                run(member);
            }
        })
    }
}

fn grow(buf: &mut AlignedBuf, words: usize) {
    let bytes = words.saturating_mul(4);
    if buf.len() < bytes {
        *buf = AlignedBuf::zeroed(bytes.next_multiple_of(4096));
    }
}

/// The part of `0..total` of one of `members` members: contiguous, sizes differ by at most one.
pub(crate) fn share(total: usize, member: usize, members: usize) -> Range<usize> {
    let (each, more) = (total / members, total % members);
    let start = member * each + member.min(more);
    start..start + each + usize::from(member < more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for total in [0, 1, 5, 64, 1001] {
            for members in 1..9 {
                let mut next = 0;
                for member in 0..members {
                    let part = share(total, member, members);
                    assert_eq!(part.start, next);
                    next = part.end;
                }
                assert_eq!(next, total);
            }
        }
    }

    #[test]
    fn scratch_grows_once() {
        let engine = Engine::new(Isa::Portable, 2).unwrap();
        let need = Need { jobs: 2, work: usize::MAX, floats: 5000 };
        engine.session().run(need, &|_, scratch| scratch.fill(1.0)).unwrap();
        let bytes = engine.scratch_bytes();
        engine.session().run(need, &|_, scratch| assert_eq!(scratch.len(), 5000)).unwrap();
        assert_eq!(engine.scratch_bytes(), bytes);
        assert!(bytes >= 2 * 5000 * 4);
    }
}
