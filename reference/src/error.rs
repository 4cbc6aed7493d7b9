//! The crate's error.

/// Why the reference could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A weight is missing, has another shape than the config says, or cannot be read.
    #[error(transparent)]
    Weights(#[from] gr00t_host::Error),
    /// The inputs do not fit the config; every problem is listed.
    #[error("inputs: {}", .0.join("; "))]
    Inputs(Vec<String>),
    /// The number of denoising steps is not usable.
    #[error("denoising steps: {got}, wanted 1 to {most}")]
    Steps {
        /// What was asked for.
        got: usize,
        /// One step per time bucket.
        most: usize,
    },
    /// A buffer does not have the elements of its shape.
    #[error(transparent)]
    Shape(#[from] ndarray::ShapeError),
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
