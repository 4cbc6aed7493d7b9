//! [`Reference`]: the whole model, one observation in, one action chunk out.
//!
//! Mirrors `GR00T_N1_5.get_action` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/gr00t_n1.py>.

use gr00t_host::{ModelConfig, ModelInputs, Weights};
use ndarray::Array2;

use crate::adapter::process_backbone_output;
use crate::flow::FlowMatchingActionHead;
use crate::llm::language_model;
use crate::observer::timed;
use crate::vision::extract_feature;
use crate::{Error, Observer, Part, Result};

/// GR00T N1.5 in fp32. Holds no weights: each run reads them from their source.
#[derive(Debug, Clone)]
pub struct Reference {
    config: ModelConfig,
    weights: Weights,
    denoising_steps: usize,
}

impl Reference {
    /// A model of geometry `config` whose tensors are below `weights` (the checkpoint's root). Reads nothing yet: a
    /// tensor that is missing or has another shape is an error of [`predict`](Self::predict).
    pub fn new(config: &ModelConfig, weights: Weights) -> Self {
        let denoising_steps = config.gr00t.action_head_cfg.num_inference_timesteps;
        Self { config: config.clone(), weights, denoising_steps }
    }

    /// Another number of Euler steps than the config's.
    ///
    /// # Errors
    /// [`Error::Steps`] unless `steps` is between 1 and the number of time buckets.
    pub fn with_denoising_steps(mut self, steps: usize) -> Result<Self> {
        let most = self.config.gr00t.action_head_cfg.num_timestep_buckets;
        if steps == 0 || steps > most {
            return Err(Error::Steps { got: steps, most });
        }
        self.denoising_steps = steps;
        Ok(self)
    }

    /// The geometry.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Euler steps per run.
    pub fn denoising_steps(&self) -> usize {
        self.denoising_steps
    }

    /// `action_pred [action_horizon, action_dim]`: normalised actions, not clipped.
    ///
    /// ```
    /// # use gr00t_host::{ModelConfig, ModelInputs, Weights};
    /// # use reference::{Observer, Part, Reference, Result};
    /// struct Times;
    ///
    /// impl Observer for Times {
    ///     fn finished(&mut self, part: Part, elapsed: std::time::Duration) {
    ///         println!("{}: {} ms", part.name(), elapsed.as_millis());
    ///     }
    /// }
    ///
    /// fn run(config: &ModelConfig, weights: Weights, inputs: &ModelInputs) -> Result<ndarray::Array2<f32>> {
    ///     Reference::new(config, weights).predict(inputs, &mut Times)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Inputs`] with everything in `inputs` that does not fit the config, [`Error::Weights`] if a tensor
    /// cannot be had.
    pub fn predict(&self, inputs: &ModelInputs, observer: &mut dyn Observer) -> Result<Array2<f32>> {
        let problems = problems(&self.config, inputs);
        if !problems.is_empty() {
            return Err(Error::Inputs(problems));
        }
        let ModelConfig { gr00t, eagle } = &self.config;
        let head = &gr00t.action_head_cfg;
        let eagle_model = self.weights.pp("backbone").pp("eagle_model");
        let action_head = self.weights.pp("action_head");

        let image_features =
            timed(Part::Vision, observer, |observer| extract_feature(eagle, &eagle_model, inputs, observer))?;
        let features = timed(Part::Llm, observer, |observer| {
            let model = eagle_model.pp("language_model").pp("model");
            let layers = gr00t.backbone_cfg.select_layer;
            language_model(eagle, layers, &model, &inputs.input_ids, &image_features, observer)
        })?;
        let memory = timed(Part::Adapter, observer, |observer| {
            process_backbone_output(head, &action_head, &features, observer)
        })?;
        let action_head = timed(Part::ActionHead, observer, |observer| {
            FlowMatchingActionHead::new(head, &action_head, inputs, &memory, observer)
        })?;
        let noise = Array2::from_shape_vec((gr00t.action_horizon, gr00t.action_dim), inputs.noise.clone())?;
        timed(Part::Denoise, observer, |observer| {
            action_head.get_action(noise, self.denoising_steps, observer)
        })
    }
}

/// What in `inputs` does not fit `config`, one line each.
fn problems(config: &ModelConfig, inputs: &ModelInputs) -> Vec<String> {
    let ModelConfig { gr00t, eagle } = config;
    let (head, vision, text) = (&gr00t.action_head_cfg, &eagle.vision_config, &eagle.text_config);
    let image = vision.num_channels.saturating_mul(vision.image_size.pow(2));
    let mut found = Vec::new();
    let mut length = |what: &str, got: usize, wanted: usize| {
        if got != wanted {
            found.push(format!("{what} has {got} elements, wanted {wanted}"));
        }
    };
    length("pixel_values", inputs.pixel_values.len(), inputs.views.saturating_mul(image));
    length("state", inputs.state.len(), head.max_state_dim);
    length("noise", inputs.noise.len(), gr00t.action_horizon * gr00t.action_dim);
    let image_tokens = inputs.input_ids.iter().filter(|&&id| id == eagle.image_token_index).count();
    let wanted = inputs.views.saturating_mul(eagle.tokens_per_view());
    if image_tokens != wanted {
        let views = inputs.views;
        found.push(format!("input_ids has {image_tokens} image tokens, wanted {wanted} for {views} views"));
    }
    if inputs.views == 0 {
        found.push("no views, wanted at least 1".into());
    }
    if let Some(id) = inputs.input_ids.iter().find(|&&id| id as usize >= text.vocab_size) {
        found.push(format!("input_ids has {id}, the vocabulary ends at {}", text.vocab_size));
    }
    if inputs.input_ids.len() > text.max_position_embeddings {
        let (got, most) = (inputs.input_ids.len(), text.max_position_embeddings);
        found.push(format!("input_ids has {got} tokens, at most {most} fit"));
    }
    if inputs.embodiment_id >= head.max_num_embodiments {
        let (got, count) = (inputs.embodiment_id, head.max_num_embodiments);
        found.push(format!("embodiment_id is {got}, there are {count} slots"));
    }
    found
}
