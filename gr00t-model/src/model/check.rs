//! Model inputs against the config, before anything reaches the device.

use gr00t_host::ModelInputs;
use tt_ops::Device;

use super::Gr00t;
use crate::error::{ModelError, Result};

impl<D: Device> Gr00t<D> {
    /// Refuses inputs that do not fit, with every reason.
    pub(super) fn check(&self, inputs: &ModelInputs) -> Result<()> {
        let found = self.problems(inputs);
        if found.is_empty() { Ok(()) } else { Err(ModelError::Inputs(found)) }
    }

    fn problems(&self, inputs: &ModelInputs) -> Vec<String> {
        let config = self.config();
        let (eagle, head) = (&config.eagle, &config.gr00t.action_head_cfg);
        let (vision, text) = (&eagle.vision_config, &eagle.text_config);
        let mut found = Vec::new();
        let mut wanted = |ok: bool, what: String| {
            if !ok {
                found.push(what);
            }
        };
        let ModelInputs { pixel_values, views, input_ids, state, noise, embodiment_id } = inputs;

        let image = vision.num_channels * vision.image_size * vision.image_size;
        let pixels = views.saturating_mul(image);
        wanted(*views > 0, "no views, wanted at least 1".into());
        wanted(
            pixel_values.len() == pixels,
            format!("pixel_values has {} elements, wanted {pixels}", pixel_values.len()),
        );
        let image_tokens = input_ids.iter().filter(|&&id| id == eagle.image_token_index).count();
        let per_view = views.saturating_mul(eagle.tokens_per_view());
        wanted(
            image_tokens == per_view,
            format!("input_ids has {image_tokens} image tokens, wanted {per_view} for {views} views"),
        );
        let longest = text.max_position_embeddings;
        wanted(
            input_ids.len() <= longest,
            format!("input_ids has {} tokens, at most {longest} fit", input_ids.len()),
        );
        if let Some(id) = input_ids.iter().find(|&&id| id as usize >= text.vocab_size) {
            wanted(false, format!("input_ids has {id}, the vocabulary ends at {}", text.vocab_size));
        }
        wanted(
            state.len() == head.max_state_dim,
            format!("state has {} elements, wanted {}", state.len(), head.max_state_dim),
        );
        let (action_dim, longest) = (head.action_dim, head.max_seq_len);
        let horizon = noise.len() / action_dim;
        wanted(
            noise.len().is_multiple_of(action_dim) && (1..=longest).contains(&horizon),
            format!(
                "noise has {} elements, wanted {action_dim} for each of 1 to {longest} steps",
                noise.len()
            ),
        );
        wanted(
            *embodiment_id < head.max_num_embodiments,
            format!("embodiment_id is {embodiment_id}, there are {} slots", head.max_num_embodiments),
        );
        for (what, values) in [("pixel_values", pixel_values), ("state", state), ("noise", noise)] {
            let count = values.iter().filter(|value| !value.is_finite()).count();
            wanted(count == 0, format!("{what} has {count} values that are not finite"));
        }
        found
    }
}
