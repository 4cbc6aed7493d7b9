//! A source whose names carry a wrapper's prefix, seen without it.

use std::sync::Arc;

use half::bf16;

use super::{TensorInfo, TensorSource};
use crate::{Error, Result};

/// What LeRobot's `GrootPolicy` puts before every name of the model that it wraps.
pub(super) const LEROBOT_PREFIX: &str = "_groot_model.";

/// `inner` with [`LEROBOT_PREFIX`] taken off its names.
#[derive(Debug)]
pub(super) struct LeRobotNames {
    inner: Arc<dyn TensorSource>,
}

impl LeRobotNames {
    /// `inner` itself if none of its names has the prefix.
    ///
    /// # Errors
    /// [`Error::Tensor`] if a name occurs with and without the prefix.
    pub(super) fn unwrap_names(inner: Arc<dyn TensorSource>) -> Result<Arc<dyn TensorSource>> {
        let names = inner.names();
        let mut prefixed = names.iter().filter_map(|name| name.strip_prefix(LEROBOT_PREFIX)).peekable();
        if prefixed.peek().is_none() {
            return Ok(inner);
        }
        if let Some(twice) = prefixed.find(|name| inner.info(name).is_some()) {
            return Err(Error::tensor(twice, format!("present with and without {LEROBOT_PREFIX}")));
        }
        Ok(Arc::new(Self { inner }))
    }

    fn stored_name(&self, name: &str) -> String {
        let prefixed = format!("{LEROBOT_PREFIX}{name}");
        if self.inner.info(&prefixed).is_some() { prefixed } else { name.to_owned() }
    }
}

impl TensorSource for LeRobotNames {
    fn describe(&self) -> String {
        format!("{} (LeRobot's names)", self.inner.describe())
    }

    fn names(&self) -> Vec<String> {
        let names = self.inner.names().into_iter();
        names.map(|name| name.strip_prefix(LEROBOT_PREFIX).map(str::to_owned).unwrap_or(name)).collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.inner.info(&self.stored_name(name))
    }

    fn read_f32(&self, name: &str, start: usize, out: &mut [f32]) -> Result<()> {
        self.inner.read_f32(&self.stored_name(name), start, out)
    }

    fn read_bf16(&self, name: &str, start: usize, out: &mut [bf16]) -> Result<()> {
        self.inner.read_bf16(&self.stored_name(name), start, out)
    }
}
