//! The crate's error.

use crate::stages::Stage;

/// Why a model could not be loaded or a prediction not be made. Messages are one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Configs, weights, observations, statistics: everything that needs no device.
    #[error(transparent)]
    Host(#[from] gr00t_host::Error),
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] tt_ops::TtError),
    /// Model inputs that do not fit the config; every problem is listed.
    #[error("inputs: {}", .0.join("; "))]
    Inputs(Vec<String>),
    /// A name that is no dtype policy or trace layout.
    #[error("{what}: got {got:?}, wanted {wanted}")]
    Name {
        /// What was named.
        what: &'static str,
        /// The name.
        got: String,
        /// The names there are.
        wanted: &'static str,
    },
    /// An option outside its range.
    #[error("option {option}: got {got}, wanted {wanted}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        got: String,
        /// What would have been accepted.
        wanted: String,
    },
    /// The weights of this embodiment slot are not on the device.
    #[error("embodiment slot {got} is not loaded, loaded are {loaded:?}")]
    Embodiment {
        /// The slot asked for.
        got: usize,
        /// The slots there are.
        loaded: Vec<usize>,
    },
    /// The caller's token asked to stop; the stage named did not run.
    #[error("cancelled before {before}")]
    Cancelled {
        /// The next stage.
        before: Stage,
    },
    /// The caller's token asked to stop while weights were loaded.
    #[error("cancelled while loading weights")]
    LoadCancelled,
    /// The model gave NaN or an infinity.
    #[error("action_pred: {count} of {elements} values are not finite")]
    NotFinite {
        /// How many.
        count: usize,
        /// Of how many.
        elements: usize,
    },
    /// The files of a checkpoint cannot be identified for the cache of packed weights.
    #[error("packed cache: {0}")]
    Cache(String),
    /// A part of the program that must hold failed in an earlier call.
    #[error("model: {0}")]
    Internal(&'static str),
}

/// Result of this crate.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;
