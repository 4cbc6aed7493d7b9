//! SigLIP 2 vision tower without the pooling head.
//!
//! Mirrors `SiglipVisionTransformer` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/siglip/modeling_siglip.py>.

use gr00t_host::config::VisionConfig;
use tt_ops::{Device, ops};

use super::layer::SiglipEncoderLayer;
use crate::error::Result;
use crate::taps::Taps;
use crate::weights::{Activations, LayerNorm, Linear, Loader, Precise};

/// `SiglipVisionTransformer`: `last_hidden_state`, which is after `post_layernorm`.
#[derive(Debug)]
pub(super) struct VisionTower<D: Device> {
    embeddings: SiglipVisionEmbeddings<D>,
    layers: Vec<SiglipEncoderLayer<D>>,
    post_layernorm: LayerNorm<D>,
}

impl<D: Device> VisionTower<D> {
    pub(super) fn new(config: &VisionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let layers = weights.pp("encoder").pp("layers");
        let (dim, eps) = (config.hidden_size, config.layer_norm_eps);
        Ok(Self {
            embeddings: SiglipVisionEmbeddings::new(config, &weights.pp("embeddings"))?,
            layers: (0..config.num_hidden_layers)
                .map(|i| SiglipEncoderLayer::new(config, &layers.pp(i)))
                .collect::<Result<_>>()?,
            post_layernorm: LayerNorm::new(dim, eps, &weights.pp("post_layernorm"))?,
        })
    }

    /// Patches `[images, patches, channels · patch²]` to `[images, patches, hidden]`.
    pub(super) fn forward(&self, patches: &Activations<D>, taps: &Taps<'_, D>) -> Result<Activations<D>> {
        let mut x = self.embeddings.forward(patches)?;
        taps.keep("vision.embeddings", &x);
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x)?;
            taps.keep(format_args!("vision.layer.{i}"), &x);
        }
        let x = self.post_layernorm.forward(&x)?;
        taps.keep("vision.post_layernorm", &x);
        Ok(x)
    }
}

/// `SiglipVisionEmbeddings`: a convolution whose stride is its kernel, and learned positions.
#[derive(Debug)]
struct SiglipVisionEmbeddings<D: Device> {
    patch_embedding: Linear<D>,
    position_embedding: Precise<D>,
}

impl<D: Device> SiglipVisionEmbeddings<D> {
    fn new(config: &VisionConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let &VisionConfig { hidden_size, num_channels, patch_size, .. } = config;
        let (kernel, patches) = ([hidden_size, num_channels, patch_size, patch_size], config.num_patches());
        let positions = weights.pp("position_embedding");
        Ok(Self {
            patch_embedding: Linear::convolution(kernel, "patch_embedding", weights)?,
            position_embedding: positions.table("weight", [patches, hidden_size], 0..patches)?,
        })
    }

    fn forward(&self, patches: &Activations<D>) -> Result<Precise<D>> {
        let x: Precise<D> = self.patch_embedding.forward(patches)?;
        Ok(ops::add(&x, &self.position_embedding)?)
    }
}
