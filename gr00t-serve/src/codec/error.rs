//! Why bytes from a client are not what their protocol says.

/// One line: what was found and what was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A NumPy array (header, dtype, shape or length).
    #[error("array: {0}")]
    Array(String),
    /// A msgpack message.
    #[error("msgpack: {0}")]
    Msgpack(String),
    /// A JSON message.
    #[error("json: {0}")]
    Json(String),
    /// More, larger or deeper than [`Limits`](super::Limits) allow.
    #[error("{what} is {got}, at most {most}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        got: usize,
        /// The limit.
        most: usize,
    },
    /// Something that would have to be executed or unpickled.
    #[error("{0} is refused: nothing that a client sends is unpickled")]
    Pickle(String),
    /// A well-formed message that is not an observation; every problem is listed.
    #[error("observation: {}", .0.join("; "))]
    Observation(Vec<String>),
}

/// Result of decoding.
pub type Result<T, E = CodecError> = std::result::Result<T, E>;
