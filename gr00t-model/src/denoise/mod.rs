//! The flow-matching action head: from noise to actions in a few Euler steps.
//!
//! Mirrors `FlowmatchingActionHead.get_action` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>.
//! Computed once, not per step: time embeddings and modulation vectors at load, keys and values of the cross-attentions
//! per observation.

mod action_encoder;
mod decoder;
mod dit;
mod embodiment;
mod euler;
mod modulation;
mod state_encoder;
mod time;

use std::sync::Arc;

use gr00t_host::config::ActionHeadConfig;
use tt_ops::{Device, ops};

use crate::error::Result;
use crate::taps::Taps;
use crate::weights::{Activations, Loader, Precise};
use dit::Dit;

pub(crate) use embodiment::Embodiment;
pub(crate) use euler::timesteps;
pub(crate) use modulation::DitStep;

/// What is the same for every embodiment.
#[derive(Debug)]
pub(crate) struct ActionHead<D: Device> {
    future_tokens: Precise<D>,
    position_embedding: Precise<D>,
    model: Dit<D>,
}

/// What depends on a step's time alone.
#[derive(Debug, Clone)]
pub(crate) struct StepConstants<D: Device> {
    pub(crate) dit: Arc<DitStep<D>>,
    /// The time's share of the action encoder's second layer, `[1, dim]`.
    pub(crate) tau: Precise<D>,
}

/// What one observation brings.
#[derive(Debug)]
pub(crate) struct Observed<'a, D: Device> {
    /// `[batch, 1, max_state_dim]`.
    pub(crate) state: &'a Precise<D>,
    /// `[batch, horizon, action_dim]`.
    pub(crate) noise: &'a Precise<D>,
    /// The adapter's output `[batch, sequence, dim]`.
    pub(crate) memory: &'a Activations<D>,
    /// `[batch, 1, tokens, sequence]`: hides the memory's padding where there may be some.
    pub(crate) mask: Option<&'a Activations<D>>,
}

impl<D: Device> ActionHead<D> {
    /// Weights below `action_head`.
    pub(crate) fn new(config: &ActionHeadConfig, weights: &Loader<'_, D>) -> Result<Self> {
        let (dim, futures, positions) =
            (config.input_embedding_dim, config.num_target_vision_tokens, config.max_seq_len);
        let table = |name, rows| weights.pp(name).table("weight", [rows, dim], 0..rows);
        Ok(Self {
            future_tokens: table("future_tokens", futures)?,
            position_embedding: table("position_embedding", positions)?,
            model: Dit::new(&config.diffusion_model_cfg, &weights.pp("model"))?,
        })
    }

    /// Integrates the flow from noise to `action_pred [batch, horizon, action_dim]`.
    pub(crate) fn forward(
        &self,
        embodiment: &Embodiment<D>,
        steps: &[StepConstants<D>],
        observed: &Observed<'_, D>,
        taps: &Taps<'_, D>,
    ) -> Result<Precise<D>> {
        let (batch, horizon) = (observed.noise.dim(0), observed.noise.dim(1));
        let state_features = embodiment.state_encoder.forward(observed.state)?;
        taps.keep("state_features", &state_features);
        let memory = self.model.key_values(observed.memory)?;
        let future_tokens = ops::concat(&vec![&self.future_tokens; batch], 0)?;
        let positions = ops::slice_dim(&self.position_embedding, 1, 0..horizon)?;

        let action_pred = euler::integrate(observed.noise, steps, |actions, step, k| {
            let x = embodiment.action_encoder.forward(actions, &step.tau)?;
            taps.keep(format_args!("step{k}.action_encoder"), &x);
            let x = ops::add(&x, &positions)?;
            let x = ops::concat(&[&state_features, &future_tokens, &x], 1)?;
            taps.keep(format_args!("step{k}.dit_in"), &x);
            let x = self.model.forward(x, &step.dit, &memory, observed.mask, k, taps)?;
            let x = embodiment.action_decoder.forward(&x)?;
            taps.keep(format_args!("step{k}.decoder_out"), &x);
            let tokens = x.dim(1);
            Ok(ops::slice_dim(&x, 1, tokens - horizon..tokens)?)
        })?;
        taps.keep("action_pred", &action_pred);
        Ok(action_pred)
    }
}

/// What the DiT reads of each of `timesteps`. Reads the weights that only they need.
pub(crate) fn dit_steps<D: Device>(
    config: &ActionHeadConfig,
    timesteps: &[usize],
    weights: &Loader<'_, D>,
) -> Result<Vec<Arc<DitStep<D>>>> {
    let dit = &config.diffusion_model_cfg;
    let steps = modulation::dit_steps(dit, timesteps, &weights.precise().pp("model"))?;
    // weight and bias of each norm, and the time embedding
    let vectors = timesteps.len() * (2 * (dit.num_layers + 1) + 1);
    weights.note_computed(vectors, vectors * dit.inner_dim());
    Ok(steps.into_iter().map(Arc::new).collect())
}

/// The time's share of the action encoder of slot `slot`, for each of `timesteps`.
pub(crate) fn taus<D: Device>(
    config: &ActionHeadConfig,
    slot: usize,
    timesteps: &[usize],
    weights: &Loader<'_, D>,
) -> Result<Vec<Precise<D>>> {
    let taus = action_encoder::taus(config, slot, timesteps, &weights.precise().pp("action_encoder"))?;
    weights.note_computed(taus.len(), taus.len() * config.input_embedding_dim);
    Ok(taus)
}
