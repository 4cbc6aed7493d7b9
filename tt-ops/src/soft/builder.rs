//! Opening a software device.

use std::sync::Arc;

use tt_soft::plan::PlanOptions;
use tt_soft::{Engine, Isa, team};

use super::Soft;
use super::state::Shared;
use crate::error::{Result, TtError};

/// Options of a software device. See [`Soft::builder`].
///
/// ```
/// use tt_ops::soft::{Isa, Soft};
/// # fn main() -> tt_ops::Result<()> {
/// let device = Soft::builder().isa(Isa::Portable).threads(2).checked(true).open()?;
/// assert_eq!(device.threads(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct SoftBuilder {
    isa: Option<Isa>,
    threads: Option<usize>,
    checked: bool,
}

impl SoftBuilder {
    /// Forces an instruction set level; by default `GR00T_SOFT_ISA`, or the best there is.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// Number of threads; by default `GR00T_THREADS`, or as many as there are CPUs. Results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The checked mode, stricter than silicon and slow. Padding and memory between tensors is poisoned with NaN;
    /// every result is poisoned before its op runs and looked at afterwards: an element that was not written or came
    /// from padding, a write outside the result, and a NaN from finite operands are errors that name the op. Memory
    /// of a trace is poisoned again when the trace is done with it.
    #[must_use]
    pub fn checked(mut self, checked: bool) -> Self {
        self.checked = checked;
        self
    }

    /// Opens the device.
    ///
    /// # Errors
    /// A level that this CPU does not have, a number of threads that cannot be, variables that make no sense.
    pub fn open(self) -> Result<Soft> {
        let error = |e: tt_soft::Error| TtError::Device { device: "soft", what: e.to_string() };
        let isa = self.isa.map_or_else(Isa::from_env, Ok).map_err(error)?;
        let threads = self.threads.map_or_else(team::threads_from_env, Ok).map_err(error)?;
        let engine = Engine::new(isa, threads).map_err(error)?;
        Ok(Soft { shared: Arc::new(Shared::new(engine, PlanOptions { checked: self.checked })) })
    }
}
