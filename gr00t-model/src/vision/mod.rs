//! Images to image tokens: SigLIP 2 and Eagle's connector `mlp1` (`facts`: 256 tokens per 224 × 224 view).

mod connector;
mod layer;
mod patches;
mod tower;

use gr00t_host::config::EagleConfig;
use tt_ops::Device;

use crate::error::Result;
use crate::taps::Taps;
use crate::weights::{Activations, Loader, Precise};
use connector::Connector;
use tower::VisionTower;

pub(crate) use patches::cut_patches;

/// `extract_feature` of Eagle's
/// [`modeling_eagle2_5_vl.py`](https://github.com/NVIDIA/Isaac-GR00T/tree/n1.5-release/gr00t/model/backbone/eagle2_hg_model).
#[derive(Debug)]
pub(crate) struct VisionModel<D: Device> {
    vision_model: VisionTower<D>,
    mlp1: Connector<D>,
}

impl<D: Device> VisionModel<D> {
    /// Weights below `backbone.eagle_model`.
    pub(crate) fn new(config: &EagleConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let vision_model = weights.pp("vision_model").pp("vision_model");
        Ok(Self {
            vision_model: VisionTower::new(&config.vision_config, &vision_model)?,
            mlp1: Connector::new(config, &weights.pp("mlp1"))?,
        })
    }

    /// Patches `[images, patches, channels · patch²]` to image tokens `[images, patches, text hidden_size]`.
    pub(crate) fn forward(&self, patches: &Activations<D>, taps: &Taps<'_, D>) -> Result<Precise<D>> {
        let x = self.vision_model.forward(patches, taps)?;
        let x = self.mlp1.forward(&x)?;
        taps.keep("vision.mlp1", &x);
        Ok(x)
    }
}
