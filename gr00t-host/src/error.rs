//! The crate's error: one variant per kind of thing that can be wrong with what a user hands in.

use std::path::{Path, PathBuf};

use crate::OneLine;

/// What went wrong, where, what was found and what was wanted. Messages are one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {reason}", OneLine(.path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason. Part of the message, so not [`std::error::Error::source`], which would say it twice.
        reason: std::io::Error,
    },
    /// A file is not the JSON or TOML that it should be.
    #[error("{}: {}", OneLine(.path.display()), OneLine(.what))]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parser's reason, with line and column where it has them.
        what: String,
    },
    /// A model configuration contradicts itself or asks for what this model is not.
    #[error("config: {}", OneLine(.0))]
    Config(String),
    /// A checkpoint (folder, shard, index, cache entry) is not usable.
    #[error("checkpoint {}: {}", OneLine(.path.display()), OneLine(.what))]
    Checkpoint {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// One tensor is missing or is not what was wanted.
    #[error("tensor {}: {}", OneLine(.name), OneLine(.what))]
    Tensor {
        /// Full dotted name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A repository could not be found in the cache or fetched.
    #[error("hub {}: {}", OneLine(.repo), OneLine(.what))]
    Hub {
        /// `owner/name@revision`.
        repo: String,
        /// What is wrong.
        what: String,
    },
    /// An image cannot be decoded or has a size that the policy refuses.
    #[error("image: {}", OneLine(.0))]
    Image(String),
    /// An instruction cannot be turned into tokens.
    #[error("prompt: {}", OneLine(.0))]
    Prompt(String),
    /// Noise of the wrong shape or with values that are not finite.
    #[error("noise: {}", OneLine(.0))]
    Noise(String),
    /// Statistics or modalities of an embodiment are missing or contradictory.
    #[error("metadata: {}", OneLine(.0))]
    Metadata(String),
    /// A data config is unknown, malformed, or does not fit the metadata.
    #[error("data config {}: {}", OneLine(.name), OneLine(.what))]
    DataConfig {
        /// The data config.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// An observation does not fit the data config; every problem is listed.
    #[error("observation: {}", OneLine(.0.join("; ")))]
    Observation(Vec<String>),
    /// The model's output is not a usable action.
    #[error("action: {}", OneLine(.0))]
    Action(String),
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl AsRef<Path>, reason: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), reason }
    }

    /// An [`Error::Checkpoint`] for `path`.
    pub fn checkpoint(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::Checkpoint { path: path.as_ref().to_path_buf(), what: what.into() }
    }

    /// The message beside the name of an image, as in `image front: not a PNG`: without the variant's own `image: `.
    pub fn of_image(&self) -> String {
        match self {
            Self::Image(what) => OneLine(what).to_string(),
            other => other.to_string(),
        }
    }

    /// An [`Error::Tensor`] for `name`.
    pub fn tensor(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Tensor { name: name.into(), what: what.into() }
    }
}
