//! The crate's error: one variant per kind of thing that can be wrong with what a user hands in.

use std::path::{Path, PathBuf};

/// What went wrong, where, what was found and what was wanted. Messages are one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not the JSON or TOML that it should be.
    #[error("{path}: {what}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parser's reason, with line and column where it has them.
        what: String,
    },
    /// A model configuration contradicts itself or asks for what this model is not.
    #[error("config: {0}")]
    Config(String),
    /// A checkpoint (folder, shard, index, cache entry) is not usable.
    #[error("checkpoint {path}: {what}")]
    Checkpoint {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// One tensor is missing or is not what was wanted.
    #[error("tensor {name}: {what}")]
    Tensor {
        /// Full dotted name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A repository could not be found in the cache or fetched.
    #[error("hub {repo}: {what}")]
    Hub {
        /// `owner/name@revision`.
        repo: String,
        /// What is wrong.
        what: String,
    },
    /// An image cannot be decoded or has a size that the policy refuses.
    #[error("image: {0}")]
    Image(String),
    /// An instruction cannot be turned into tokens.
    #[error("prompt: {0}")]
    Prompt(String),
    /// Noise of the wrong shape or with values that are not finite.
    #[error("noise: {0}")]
    Noise(String),
    /// Statistics or modalities of an embodiment are missing or contradictory.
    #[error("metadata: {0}")]
    Metadata(String),
    /// A data config is unknown, malformed, or does not fit the metadata.
    #[error("data config {name}: {what}")]
    DataConfig {
        /// The data config.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// An observation does not fit the data config; every problem is listed.
    #[error("observation: {}", .0.join("; "))]
    Observation(Vec<String>),
    /// The model's output is not a usable action.
    #[error("action: {0}")]
    Action(String),
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// An [`Error::Checkpoint`] for `path`.
    pub fn checkpoint(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::Checkpoint { path: path.as_ref().to_path_buf(), what: what.into() }
    }

    /// An [`Error::Tensor`] for `name`.
    pub fn tensor(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Tensor { name: name.into(), what: what.into() }
    }
}
