//! Execution plans: planned calls of kernels on numbered buffers, run at once or recorded, placed in one arena and
//! replayed.
//!
//! ```text
//! op ── Call { kernel, operands } ──┬── run_step: at once, on heap buffers
//!                                   └── Recording ── finish ──► Plan ── run, run, run …
//! ```
//!
//! * An [`Operand`] is a place in a buffer with shape and strides, so reshape, slice and permute cost nothing.
//! * [`Recording::finish`] gives every buffer its place: kept ones in the heap, where they can be read between runs;
//!   all others in the arena, sharing memory with buffers that are not alive at the same time. All plans of a heap
//!   share its arena, because nothing in it outlives a run.
//! * A result may take over the memory of an operand that dies with the call (the residual of a matmul). The plan
//!   changes where values lie, never how they are computed.
//! * A result that is only copied into a part of a larger buffer (concat of rows) is written there at once.
//! * Running a plan allocates nothing. The checked mode ([`PlanOptions::checked`]) poisons and looks, and may.

mod elide;
mod heap;
mod kernel;
mod memory;
mod operand;
mod placement;
mod poison;
mod quantize;
mod recording;
mod run;
mod transfer;

pub use heap::{Heap, HeapId};
pub use kernel::Kernel;
#[cfg(test)]
use memory::run_call;
pub use operand::{Arrangement, BufferId, GUARD_ROWS, Operand, ROW_ALIGNMENT};
pub use recording::{Call, PlanOptions, Recording, Step};
pub use run::{Plan, poison_padding, run_step};
pub use transfer::{copy_from_host, copy_to_host};

#[cfg(test)]
mod tests;
