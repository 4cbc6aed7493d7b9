//! The crate's error: every refusal names the op, what it got and what it wanted, before anything reaches a device.

/// What went wrong. Messages are one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TtError {
    /// Shapes that do not fit an op.
    #[error("shape mismatch in {op}: got {got}, wanted {wanted}")]
    Shape {
        /// The op's TTNN name.
        op: &'static str,
        /// The shapes handed in.
        got: String,
        /// What would have been accepted.
        wanted: String,
    },
    /// Data types that do not fit an op.
    #[error("dtype mismatch in {op}: got {got}, wanted {wanted}")]
    Dtype {
        /// The op's TTNN name.
        op: &'static str,
        /// The data types handed in.
        got: String,
        /// What would have been accepted.
        wanted: String,
    },
    /// A layout that an op cannot read.
    #[error("layout mismatch in {op}: got {got}, wanted {wanted}")]
    Layout {
        /// The op's TTNN name.
        op: &'static str,
        /// The layout handed in.
        got: String,
        /// What would have been accepted.
        wanted: String,
    },
    /// An argument outside its range.
    #[error("bad argument in {op}: got {got}, wanted {wanted}")]
    Argument {
        /// The op's TTNN name.
        op: &'static str,
        /// The argument and its value.
        got: String,
        /// What would have been accepted.
        wanted: String,
    },
    /// Operands that live on different devices.
    #[error("operands of {op} live on different devices")]
    Devices {
        /// The op's TTNN name.
        op: &'static str,
    },
    /// A device that cannot be opened, or an option it does not have.
    #[error("device {device}: {what}")]
    Device {
        /// `soft` or `metal`.
        device: &'static str,
        /// Why not, and how to get it.
        what: String,
    },
    /// What TTNN refused or could not do.
    #[error("{op} on metal: {what}")]
    Ttnn {
        /// The op or access that called it.
        op: &'static str,
        /// What it said.
        what: String,
    },
    /// Something that may not happen while a trace is being captured.
    #[error("capture: {0}")]
    Capture(String),
    /// A tensor whose memory was given back or never written.
    #[error("{op}: tensor {what}")]
    Memory {
        /// The op or access that met it.
        op: &'static str,
        /// The tensor's state.
        what: String,
    },
    /// The checked mode of the software device found an op that broke its contract.
    #[error("checked mode: {op}: {what}")]
    Checked {
        /// The op's TTNN name.
        op: &'static str,
        /// What it did.
        what: String,
    },
}

/// Result of this crate.
pub type Result<T, E = TtError> = std::result::Result<T, E>;

impl TtError {
    /// A [`TtError::Shape`].
    pub fn shape(op: &'static str, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::Shape { op, got: got.into(), wanted: wanted.into() }
    }

    /// A [`TtError::Dtype`].
    pub fn dtype(op: &'static str, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::Dtype { op, got: got.into(), wanted: wanted.into() }
    }

    /// A [`TtError::Argument`].
    pub fn argument(op: &'static str, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::Argument { op, got: got.into(), wanted: wanted.into() }
    }

    /// A [`TtError::Memory`].
    pub fn memory(op: &'static str, what: impl Into<String>) -> Self {
        Self::Memory { op, what: what.into() }
    }
}
