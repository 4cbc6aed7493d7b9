//! The flow-matching action head: from noise to actions in a few Euler steps.
//!
//! Mirrors `FlowmatchingActionHead.get_action` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>.

use gr00t_host::config::ActionHeadConfig;
use gr00t_host::{ModelInputs, Weights};
use ndarray::{Array2, Axis, concatenate};

use crate::dit::Dit;
use crate::state_action::{Category, CategorySpecificMlp, MultiEmbodimentActionEncoder, row};
use crate::{Observer, Part, Result};

/// The action head with the weights of one embodiment and the memory of one observation.
#[derive(Debug)]
pub(crate) struct FlowMatchingActionHead {
    state_features: Array2<f32>,
    action_encoder: MultiEmbodimentActionEncoder,
    /// The first `action_horizon` rows.
    position_embedding: Array2<f32>,
    future_tokens: Array2<f32>,
    model: Dit,
    action_decoder: CategorySpecificMlp,
    num_timestep_buckets: usize,
}

impl FlowMatchingActionHead {
    /// `memory` is the adapter's output.
    pub(crate) fn new(
        config: &ActionHeadConfig,
        weights: &Weights,
        inputs: &ModelInputs,
        memory: &Array2<f32>,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let category = Category { id: inputs.embodiment_id, count: config.max_num_embodiments };
        let state_encoder = CategorySpecificMlp::state_encoder(config, category, weights)?;
        let state_features = state_encoder.forward(&row(&inputs.state));
        observer.stage("state_features", state_features.view());

        let (dim, horizon) = (config.input_embedding_dim, config.action_horizon);
        let positions = weights.pp("position_embedding");
        let positions = positions.f32_rows("weight", &[config.max_seq_len, dim], 0..horizon)?;
        let futures = config.num_target_vision_tokens;
        Ok(Self {
            state_features,
            action_encoder: MultiEmbodimentActionEncoder::new(config, category, weights)?,
            position_embedding: Array2::from_shape_vec((horizon, dim), positions)?,
            future_tokens: Array2::from_shape_vec(
                (futures, dim),
                weights.pp("future_tokens").f32("weight", &[futures, dim])?,
            )?,
            model: Dit::new(&config.diffusion_model_cfg, &weights.pp("model"), memory, observer)?,
            action_decoder: CategorySpecificMlp::action_decoder(config, category, weights)?,
            num_timestep_buckets: config.num_timestep_buckets,
        })
    }

    /// Integrates `noise [horizon, action_dim]` from time 0 to 1 in `steps` Euler steps.
    pub(crate) fn get_action(
        &self,
        noise: Array2<f32>,
        steps: usize,
        observer: &mut dyn Observer,
    ) -> Result<Array2<f32>> {
        let mut actions = noise;
        let dt = (1.0 / steps as f64) as f32;
        for k in 0..steps {
            let time = k as f64 / steps as f64;
            let timestep = (time * self.num_timestep_buckets as f64) as usize;
            let velocity = self.velocity(&actions, timestep, &format!("step{k}"), observer)?;
            actions.scaled_add(dt, &velocity);
            observer.progress(Part::Denoise, k + 1, steps);
        }
        observer.stage("action_pred", actions.view());
        Ok(actions)
    }

    /// The flow's velocity `[horizon, action_dim]` at `actions` and time bucket `timestep`.
    fn velocity(
        &self,
        actions: &Array2<f32>,
        timestep: usize,
        step: &str,
        observer: &mut dyn Observer,
    ) -> Result<Array2<f32>> {
        let action_features = self.action_encoder.forward(actions, timestep);
        observer.stage(&format!("{step}.action_encoder"), action_features.view());

        let action_features = action_features + &self.position_embedding;
        let sa_embs = concatenate(
            Axis(0),
            &[self.state_features.view(), self.future_tokens.view(), action_features.view()],
        )?;
        observer.stage(&format!("{step}.dit_in"), sa_embs.view());

        let model_output = self.model.forward(sa_embs, timestep, step, observer);
        let pred = self.action_decoder.forward(&model_output);
        observer.stage(&format!("{step}.decoder_out"), pred.view());

        let (_, velocity) = pred.view().split_at(Axis(0), pred.nrows() - actions.nrows());
        Ok(velocity.to_owned())
    }
}
