//! Why a prediction was not made, in terms that every protocol can pass on.

use std::time::Duration;

use gr00t_model::ModelError;

/// Why a request got no actions. Messages are one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The model is not warm yet.
    #[error("starting: the model is not ready yet")]
    Starting,
    /// The server is going down.
    #[error("stopping: no new requests are taken")]
    Stopping,
    /// Too many requests wait already.
    #[error("overloaded: {waiting} requests wait for the device, at most {limit} may")]
    Overloaded {
        /// Requests in the queue.
        waiting: usize,
        /// The queue's bound.
        limit: usize,
    },
    /// The request's time was up before its actions were there.
    #[error("deadline: no actions within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The observation does not fit; every problem is listed.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// The client has gone away.
    #[error("cancelled")]
    Cancelled,
    /// The device or the model failed.
    #[error("{what}")]
    Device {
        /// `Type: text`.
        what: String,
    },
}

impl ServiceError {
    /// Short name, for metrics and logs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Stopping => "stopping",
            Self::Overloaded { .. } => "overloaded",
            Self::Deadline(_) => "deadline",
            Self::Invalid(_) => "invalid",
            Self::Cancelled => "cancelled",
            Self::Device { .. } => "device",
        }
    }

    /// The HTTP status that says the same.
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::Starting | Self::Stopping => 503,
            Self::Overloaded { .. } => 429,
            Self::Deadline(_) => 504,
            Self::Invalid(_) => 400,
            // nginx's "client closed request": nobody reads it
            Self::Cancelled => 499,
            Self::Device { .. } => 500,
        }
    }

    /// Everything that is wrong, one entry each.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Invalid(problems) => problems.clone(),
            other => vec![other.to_string()],
        }
    }

    /// Whether the device is to blame, so that the service is not ready until it has shown otherwise.
    pub(super) const fn is_of_device(&self) -> bool {
        matches!(self, Self::Device { .. })
    }

    /// A panic in host or device work.
    pub(super) fn panicked() -> Self {
        Self::Device { what: "Panic: the work of this request failed, see the log".into() }
    }
}

impl From<ModelError> for ServiceError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Host(error) => error.into(),
            ModelError::Inputs(problems) => Self::Invalid(problems),
            ModelError::Cancelled { .. } => Self::Cancelled,
            ModelError::Option { .. } => Self::Invalid(vec![error.to_string()]),
            ModelError::Device(error) => Self::Device { what: format!("DeviceError: {error}") },
            error => Self::Device { what: format!("ModelError: {error}") },
        }
    }
}

impl From<gr00t_host::Error> for ServiceError {
    fn from(error: gr00t_host::Error) -> Self {
        match error {
            gr00t_host::Error::Observation(problems) => Self::Invalid(problems),
            // the model gave what no robot may get
            error @ gr00t_host::Error::Action(_) => Self::Device { what: format!("ActionError: {error}") },
            error => Self::Invalid(vec![error.to_string()]),
        }
    }
}
