//! The card in a build without tt-metal.

use std::convert::Infallible;
use std::time::Duration;

use crate::captured::CapturedOps;
use crate::device::{CaptureOptions, Device, Input};
use crate::dtype::{HostSlice, HostSliceMut};
use crate::error::{Result, TtError};
use crate::metal::MetalOptions;
use crate::op::Op;
use crate::spec::{TensorSpec, WeightSpec};

/// A Tenstorrent card. In this build it cannot exist: its handles are uninhabited, so that code which is generic over
/// [`Device`] compiles for it.
#[derive(Debug, Clone)]
pub enum Metal {}

impl Metal {
    /// Opens the card.
    ///
    /// # Errors
    /// Always in this build: tt-metal is not part of it.
    pub fn open(options: &MetalOptions) -> Result<Self> {
        Err(TtError::Device {
            device: "metal",
            what: format!(
                "card {} cannot be opened: this build has no tt-metal; build with `--features metal` where tt-metal is \
                 installed, or choose the device `soft`",
                options.device_id
            ),
        })
    }

    /// Closes the card.
    pub fn close(&self) {
        match *self {}
    }
}

impl Device for Metal {
    type Buffer = Infallible;
    type Packed = Infallible;
    type Trace = Infallible;
    const COMPILES: bool = true;
    const ROW_TILE: usize = 32;

    fn name(&self) -> &'static str {
        match *self {}
    }

    fn describe(&self) -> String {
        match *self {}
    }

    fn same(&self, _: &Self) -> bool {
        match *self {}
    }

    fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    fn upload(&self, _: &TensorSpec, _: HostSlice<'_>) -> Result<Infallible> {
        match *self {}
    }

    fn write(&self, _: &Infallible, _: &TensorSpec, _: HostSlice<'_>) -> Result<()> {
        match *self {}
    }

    fn read(&self, _: &Infallible, _: &TensorSpec, _: HostSliceMut<'_>) -> Result<()> {
        match *self {}
    }

    fn deallocate(&self, _: &Infallible) -> Result<()> {
        match *self {}
    }

    fn pack(&self, _: &WeightSpec, _: &[HostSlice<'_>]) -> Result<Infallible> {
        match *self {}
    }

    fn packed_bytes(&self, _: &Infallible) -> usize {
        match *self {}
    }

    fn packed_format(&self) -> &'static str {
        match *self {}
    }

    fn packed_to_bytes(&self, _: &Infallible) -> Result<Vec<u8>> {
        match *self {}
    }

    fn packed_from_bytes(&self, _: &WeightSpec, _: &[u8]) -> Result<Infallible> {
        match *self {}
    }

    fn dispatch(&self, _: &Op, _: &[Input<'_, Self>], _: &[TensorSpec]) -> Result<Vec<Infallible>> {
        match *self {}
    }

    fn begin_capture(&self, _: CaptureOptions) -> Result<()> {
        match *self {}
    }

    fn end_capture(&self) -> Result<Infallible> {
        match *self {}
    }

    fn abort_capture(&self) {
        match *self {}
    }

    fn replay(&self, _: &Infallible) -> Result<()> {
        match *self {}
    }

    fn replay_timed(&self, _: &Infallible) -> Result<Vec<Duration>> {
        match *self {}
    }

    fn captured_ops<'a>(&self, _: &'a Infallible) -> &'a CapturedOps {
        match *self {}
    }

    fn captured_results(&self, _: &Infallible) -> Vec<Vec<(Infallible, TensorSpec)>> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_says_how_to_get_it() {
        let message = Metal::open(&MetalOptions::default()).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("--features metal"), "{message}");
    }
}
