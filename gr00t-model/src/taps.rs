//! [`Taps`]: where a forward shows its stage tensors, if anyone is looking.

use std::fmt::Display;

use tt_ops::{Capture, Device, Dtype, Tensor};

/// Keeps stage tensors of a capture readable; without an observer it does nothing. The actions are the same bytes either way.
#[derive(Debug)]
pub(crate) struct Taps<'a, D: Device> {
    capture: Option<&'a Capture<D>>,
}

impl<'a, D: Device> Taps<'a, D> {
    /// Taps on `capture`, open if `observed`.
    pub(crate) fn new(capture: &'a Capture<D>, observed: bool) -> Self {
        Self { capture: observed.then_some(capture) }
    }

    /// Whether someone is looking.
    pub(crate) fn observed(&self) -> bool {
        self.capture.is_some()
    }

    /// Shows one stage's result.
    pub(crate) fn keep<T: Dtype>(&self, name: impl Display, tensor: &Tensor<D, T>) {
        if let Some(capture) = self.capture {
            capture.keep(name.to_string(), tensor);
        }
    }
}
