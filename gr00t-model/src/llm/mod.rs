//! Tokens and image features to backbone features: Qwen3, up to the hidden state that the policy reads.

mod attention;
mod embedding;
mod layer;
mod layout;
mod rope;

use gr00t_host::ModelConfig;
use tt_ops::{Device, ops};

use crate::error::Result;
use crate::taps::Taps;
use crate::weights::{Loader, Precise, RmsNorm};
use layer::Qwen3DecoderLayer;

pub(crate) use embedding::TokenEmbedding;
pub(crate) use layout::SequenceLayout;
pub(crate) use rope::RotaryEmbedding;

/// `Qwen3Model` of
/// [`modeling_qwen3.py`](https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/qwen3/modeling_qwen3.py),
/// of which only the first `select_layer` layers exist; the last entry of `hidden_states` is after the final norm.
#[derive(Debug)]
pub(crate) struct LanguageModel<D: Device> {
    layers: Vec<Qwen3DecoderLayer<D>>,
    norm: RmsNorm<D>,
}

impl<D: Device> LanguageModel<D> {
    /// Weights below `backbone.eagle_model.language_model.model`.
    pub(crate) fn new(config: &ModelConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (text, layers) = (&config.eagle.text_config, weights.pp("layers"));
        Ok(Self {
            layers: (0..config.gr00t.backbone_cfg.select_layer)
                .map(|i| Qwen3DecoderLayer::new(text, &layers.pp(i)))
                .collect::<Result<_>>()?,
            norm: RmsNorm::new(text.hidden_size, text.rms_norm_eps, &weights.pp("norm"))?,
        })
    }

    /// Text rows `[batch, text tokens, hidden]` and image features `[batch, image tokens, hidden]`, put together as
    /// `layout` says, to `backbone_features [batch, sequence, hidden]`.
    ///
    /// Padding at the end needs no mask: attention is causal, so that no token sees it.
    pub(crate) fn forward(
        &self,
        text: &Precise<D>,
        image: &Precise<D>,
        layout: &SequenceLayout,
        rotary: &RotaryEmbedding<D>,
        taps: &Taps<'_, D>,
    ) -> Result<Precise<D>> {
        let mut x = inputs_embeds(text, image, layout)?;
        taps.keep("llm.inputs_embeds", &x);
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x, rotary)?;
            taps.keep(format_args!("llm.layer.{i}"), &x);
        }
        let x = self.norm.precise(&x)?;
        taps.keep("llm.norm", &x);
        // `eagle_linear` is the identity in N1.5
        taps.keep("backbone.features", &x);
        Ok(x)
    }
}

/// Text rows and image features in the order of the tokens.
fn inputs_embeds<D: Device>(
    text: &Precise<D>,
    image: &Precise<D>,
    layout: &SequenceLayout,
) -> Result<Precise<D>> {
    let pieces: Vec<Precise<D>> = layout
        .pieces()
        .into_iter()
        .map(|piece| ops::slice_dim(if piece.is_image { image } else { text }, 1, piece.rows))
        .collect::<tt_ops::Result<_>>()?;
    Ok(ops::concat(&pieces.iter().collect::<Vec<_>>(), 1)?)
}
