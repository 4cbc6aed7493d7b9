//! The crate's error type: each message says which kernel, what, what it got and what it wanted.

use crate::view::Dtype;

/// Result of a kernel or of building one of its arguments.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. Every check is made before a kernel touches memory, so `out` is unchanged after an error,
/// except after [`Error::Panic`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes that must agree do not.
    #[error("shape mismatch in {op}: {what} is {got:?}, wanted {wanted:?}")]
    Shape {
        /// The kernel.
        op: &'static str,
        /// Which argument.
        what: &'static str,
        /// Its shape.
        got: Vec<usize>,
        /// The shape that the other arguments ask for.
        wanted: Vec<usize>,
    },
    /// An argument has a dtype that the kernel does not take.
    #[error("dtype mismatch in {op}: {what} is {got}, wanted {wanted}")]
    Dtype {
        /// The kernel.
        op: &'static str,
        /// Which argument.
        what: &'static str,
        /// Its dtype.
        got: Dtype,
        /// The dtypes that are taken.
        wanted: &'static str,
    },
    /// An argument is laid out in a way that the kernel does not take.
    #[error("layout of {what} in {op}: {got:?} are its strides, wanted {wanted}")]
    Layout {
        /// The kernel.
        op: &'static str,
        /// Which argument.
        what: &'static str,
        /// Its strides in elements.
        got: [usize; 4],
        /// What is wanted of them.
        wanted: &'static str,
    },
    /// A view would reach beyond its buffer.
    #[error("view of shape {shape:?} with strides {strides:?} reaches past the {len} elements of its buffer")]
    OutOfBounds {
        /// Shape of the view.
        shape: [usize; 4],
        /// Strides of the view in elements.
        strides: [usize; 4],
        /// Elements in the buffer.
        len: usize,
    },
    /// Two elements of a mutable view would share a place.
    #[error("mutable view of shape {shape:?} with strides {strides:?} holds one element twice")]
    Overlap {
        /// Shape of the view.
        shape: [usize; 4],
        /// Strides of the view in elements.
        strides: [usize; 4],
    },
    /// A number is outside what a kernel can do.
    #[error("{op}: {what} is {got}, wanted {wanted}")]
    Range {
        /// The kernel.
        op: &'static str,
        /// Which number.
        what: &'static str,
        /// Its value.
        got: usize,
        /// The values that are taken.
        wanted: String,
    },
    /// A value that cannot be held in the format asked for.
    #[error("weight element [k {k}, n {n}] is {value}, wanted a finite number for {format}")]
    NotFinite {
        /// Input row.
        k: usize,
        /// Output column.
        n: usize,
        /// The value.
        value: f32,
        /// The block format.
        format: &'static str,
    },
    /// Serialised packed weights that are not what they should be.
    #[error("packed weight: {what} is {got}, wanted {wanted}")]
    Packed {
        /// Which field.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The value that was expected.
        wanted: u64,
    },
    /// Packed weights that could not be read.
    #[error("packed weight: {source}")]
    Read {
        /// Why.
        source: std::io::Error,
    },
    /// An environment variable with a value that cannot be used.
    #[error("{variable} is `{got}`, wanted {wanted}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        got: String,
        /// What is taken.
        wanted: String,
    },
    /// An instruction set level that this CPU does not have.
    #[error("instruction set {got} is not available, this CPU has {available}")]
    IsaUnavailable {
        /// The level asked for.
        got: crate::Isa,
        /// The levels there are.
        available: String,
    },
    /// A thread could not be started.
    #[error("thread {member} of the team did not start: {source}")]
    Spawn {
        /// Which member.
        member: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A kernel panicked on some thread. The contents of `out` are not defined.
    #[error("thread {member} of the team panicked: {message}")]
    Panic {
        /// Which member.
        member: usize,
        /// The panic's message.
        message: String,
    },
    /// A planned call, or the checked mode of a plan, found a fault.
    #[error("{op}: {what}")]
    Plan {
        /// The op.
        op: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A job of a team tried to give the team another job.
    #[error("a job of a thread team tried to run another job on a team")]
    Nested,
}
