//! The category-specific layers of one embodiment: of each weight only its slot is on the device.

use gr00t_host::config::ActionHeadConfig;
use tt_ops::Device;

use super::action_encoder::ActionEncoder;
use super::decoder::ActionDecoder;
use super::state_encoder::StateEncoder;
use crate::error::Result;
use crate::weights::Loader;

/// Encoders and decoder of one embodiment slot.
#[derive(Debug)]
pub(crate) struct Embodiment<D: Device> {
    pub(super) state_encoder: StateEncoder<D>,
    pub(super) action_encoder: ActionEncoder<D>,
    pub(super) action_decoder: ActionDecoder<D>,
}

impl<D: Device> Embodiment<D> {
    /// Weights below `action_head`.
    pub(crate) fn new(config: &ActionHeadConfig, slot: usize, weights: &Loader<'_, D>) -> Result<Self> {
        Ok(Self {
            state_encoder: StateEncoder::new(config, slot, &weights.pp("state_encoder"))?,
            action_encoder: ActionEncoder::new(config, slot, &weights.pp("action_encoder"))?,
            action_decoder: ActionDecoder::new(config, slot, &weights.pp("action_decoder"))?,
        })
    }
}
