//! How much one message may ask for.

use super::error::{CodecError, Result};

/// Bounds on one message, checked before anything is allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message.
    pub bytes: usize,
    /// Nesting of lists and maps.
    pub depth: usize,
    /// Lists, maps and values in them, all counted. Arrays in binary form count as one.
    pub nodes: usize,
}

impl Limits {
    /// Most bytes of a message: several cameras of a batch.
    pub const DEFAULT_BYTES: usize = 64 << 20;
    /// Deepest nesting; observations need five.
    pub const DEFAULT_DEPTH: usize = 32;
    /// Most values: one 640×480 RGB frame as a plain list of numbers.
    pub const DEFAULT_NODES: usize = 1 << 20;

    pub(crate) fn check_bytes(&self, what: &'static str, got: usize) -> Result<()> {
        if got > self.bytes {
            return Err(CodecError::TooLarge { what, got, most: self.bytes });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: Self::DEFAULT_BYTES, depth: Self::DEFAULT_DEPTH, nodes: Self::DEFAULT_NODES }
    }
}

/// What is left of a message's [`Limits`].
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    nodes: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, nodes: limits.nodes }
    }

    /// Takes `count` values.
    pub(crate) fn take(&mut self, count: usize) -> Result<()> {
        self.nodes = self.nodes.checked_sub(count).ok_or(CodecError::TooLarge {
            what: "number of values",
            got: count.saturating_add(self.limits.nodes - self.nodes),
            most: self.limits.nodes,
        })?;
        Ok(())
    }

    /// Whether a list or map may stand at `depth`.
    pub(crate) fn enter(&self, depth: usize) -> Result<()> {
        if depth >= self.limits.depth {
            return Err(CodecError::TooLarge { what: "nesting", got: depth + 1, most: self.limits.depth });
        }
        Ok(())
    }
}
