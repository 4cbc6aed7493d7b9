//! What a caller can watch of a run: stage tensors, progress, time per part.

use std::time::{Duration, Instant};

use ndarray::ArrayView2;

use crate::Result;

/// The parts of one run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// `SigLIP` vision tower and the connector `mlp1`; progress counts layers.
    Vision,
    /// Token embedding, Qwen3 layers, final norm; progress counts layers.
    Llm,
    /// `vlln` and `vl_self_attention`; progress counts blocks.
    Adapter,
    /// Reading the action head's weights, state encoder, keys and values of the cross-attention; progress counts
    /// DiT blocks.
    ActionHead,
    /// The flow-matching loop; progress counts denoising steps.
    Denoise,
}

impl Part {
    /// All parts, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Vision, Self::Llm, Self::Adapter, Self::ActionHead, Self::Denoise];

    /// Short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Llm => "llm",
            Self::Adapter => "adapter",
            Self::ActionHead => "action head",
            Self::Denoise => "denoise",
        }
    }
}

/// Receives what happens during a run; `()` ignores all of it.
pub trait Observer {
    /// One stage's result, `[rows, width]`. Rows are tokens (of all views in order, in the vision tower).
    ///
    /// Names, in order: `vision.embeddings`, `vision.layer.N`, `vision.post_layernorm`, `vision.mlp1`,
    /// `llm.inputs_embeds`, `llm.layer.N` (residual stream after layer N), `llm.norm`, `backbone.features`,
    /// `adapter.vlln`, `adapter.block.N`, `adapter.out`, `state_features`; for each denoising step K `stepK.temb`,
    /// `stepK.action_encoder` (before the position embedding), `stepK.dit_in` (all tokens), `stepK.dit_block.N`,
    /// `stepK.dit_out`, `stepK.decoder_out` (all tokens); `action_pred`.
    fn stage(&mut self, name: &str, tensor: ArrayView2<'_, f32>) {
        let _ = (name, tensor);
    }

    /// `done` of `total` units of `part` are finished.
    fn progress(&mut self, part: Part, done: usize, total: usize) {
        let _ = (part, done, total);
    }

    /// `part` is finished and took `elapsed`, reading of weights included.
    fn finished(&mut self, part: Part, elapsed: Duration) {
        let _ = (part, elapsed);
    }
}

impl Observer for () {}

/// Runs `work` as `part` and reports the time it took.
pub(crate) fn timed<T>(
    part: Part,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut dyn Observer) -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    let result = work(observer)?;
    observer.finished(part, start.elapsed());
    Ok(result)
}
