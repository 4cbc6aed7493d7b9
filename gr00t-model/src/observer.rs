//! What a caller can watch of a run: stage tensors.

/// Receives the tensors of a run, under the names of the golden results.
///
/// Names, in order: `vision.embeddings`, `vision.layer.N`, `vision.post_layernorm`, `vision.mlp1`, `llm.inputs_embeds`,
/// `llm.layer.N` (residual stream after layer N), `llm.norm`, `backbone.features`, `adapter.vlln`, `adapter.block.N`,
/// `adapter.out`, `state_features`; for each denoising step K `stepK.action_encoder` (before the position embedding),
/// `stepK.dit_in` (all tokens), `stepK.temb`, `stepK.dit_block.N`, `stepK.dit_out`, `stepK.decoder_out` (all tokens); `action_pred`.
///
/// Closures `FnMut(&str, [usize; 2], &[f32])` are observers.
pub trait Observer {
    /// One stage's result `[rows, width]`, row-major. Rows are tokens, of all views in order in the vision tower; padding is left out.
    fn stage(&mut self, name: &str, shape: [usize; 2], values: &[f32]);
}

impl<F: FnMut(&str, [usize; 2], &[f32])> Observer for F {
    fn stage(&mut self, name: &str, shape: [usize; 2], values: &[f32]) {
        self(name, shape, values);
    }
}
