//! Contradictions in a [`ModelConfig`]: geometry that no checkpoint can have, and features that N1.5 lacks.

use super::ModelConfig;
use super::gr00t::{BLOCK_ACTIVATION, BLOCK_NORM_EPS};

/// Sizes beyond this are typing errors or attacks, not models. Bytes of a tensor of three such sides fit in 64 bits.
const MAX_SIZE: usize = 1 << 20;
/// Layers beyond this likewise; keeps the list of expected tensors short.
const MAX_LAYERS: usize = 1 << 10;
/// A norm's epsilon beyond this is a typing error: variances are of order 1.
const MAX_EPS: f64 = 1e-2;
/// Colour channels of an image.
const CHANNELS: usize = 3;

impl ModelConfig {
    /// One line per contradiction, empty if there is none.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut found = self.size_problems();
        found.extend(self.constant_problems());
        if found.is_empty() {
            found.extend(self.width_problems());
            found.extend(self.unsupported());
        }
        found
    }

    fn size_problems(&self) -> Vec<String> {
        let head = &self.gr00t.action_head_cfg;
        let dit = &head.diffusion_model_cfg;
        let adapter = &head.vl_self_attention_cfg;
        let vision = &self.eagle.vision_config;
        let text = &self.eagle.text_config;
        [
            ("action_dim", self.gr00t.action_dim),
            ("action_horizon", self.gr00t.action_horizon),
            ("hidden_size", self.gr00t.hidden_size),
            ("backbone_cfg.select_layer", self.gr00t.backbone_cfg.select_layer),
            ("action_head_cfg.action_dim", head.action_dim),
            ("action_head_cfg.action_horizon", head.action_horizon),
            ("action_head_cfg.hidden_size", head.hidden_size),
            ("action_head_cfg.input_embedding_dim", head.input_embedding_dim),
            ("action_head_cfg.max_action_dim", head.max_action_dim),
            ("action_head_cfg.max_state_dim", head.max_state_dim),
            ("action_head_cfg.num_inference_timesteps", head.num_inference_timesteps),
            ("action_head_cfg.num_target_vision_tokens", head.num_target_vision_tokens),
            ("action_head_cfg.num_timestep_buckets", head.num_timestep_buckets),
            ("action_head_cfg.max_num_embodiments", head.max_num_embodiments),
            ("action_head_cfg.max_seq_len", head.max_seq_len),
            ("diffusion_model_cfg.attention_head_dim", dit.attention_head_dim),
            ("diffusion_model_cfg.num_attention_heads", dit.num_attention_heads),
            ("diffusion_model_cfg.num_layers", dit.num_layers),
            ("diffusion_model_cfg.output_dim", dit.output_dim),
            ("vl_self_attention_cfg.attention_head_dim", adapter.attention_head_dim),
            ("vl_self_attention_cfg.num_attention_heads", adapter.num_attention_heads),
            ("vision_config.hidden_size", vision.hidden_size),
            ("vision_config.intermediate_size", vision.intermediate_size),
            ("vision_config.num_hidden_layers", vision.num_hidden_layers),
            ("vision_config.num_attention_heads", vision.num_attention_heads),
            ("vision_config.num_channels", vision.num_channels),
            ("vision_config.image_size", vision.image_size),
            ("vision_config.patch_size", vision.patch_size),
            ("text_config.hidden_size", text.hidden_size),
            ("text_config.intermediate_size", text.intermediate_size),
            ("text_config.num_attention_heads", text.num_attention_heads),
            ("text_config.num_key_value_heads", text.num_key_value_heads),
            ("text_config.head_dim", text.head_dim),
            ("text_config.vocab_size", text.vocab_size),
        ]
        .into_iter()
        .map(|(name, size)| {
            let max = if name.ends_with("layers") || name.ends_with("layer") { MAX_LAYERS } else { MAX_SIZE };
            (name, size, max)
        })
        .filter(|&(_, size, max)| size == 0 || size > max)
        .map(|(name, size, max)| format!("{name} is {size}, wanted 1 to {max}"))
        .collect()
    }

    fn constant_problems(&self) -> Vec<String> {
        let (vision, text) = (&self.eagle.vision_config, &self.eagle.text_config);
        let mut found = Vec::new();
        for (name, eps) in [
            ("vision_config.layer_norm_eps", vision.layer_norm_eps),
            ("text_config.rms_norm_eps", text.rms_norm_eps),
        ] {
            if !(eps > 0.0 && eps <= MAX_EPS) {
                found.push(format!("{name} is {eps:e}, wanted above 0 and at most {MAX_EPS:e}"));
            }
        }
        if !(text.rope_theta > 1.0 && text.rope_theta.is_finite()) {
            found.push(format!("text_config.rope_theta is {}, wanted a number above 1", text.rope_theta));
        }
        found
    }

    fn width_problems(&self) -> Vec<String> {
        let g = &self.gr00t;
        let head = &g.action_head_cfg;
        let dit = &head.diffusion_model_cfg;
        let adapter = &head.vl_self_attention_cfg;
        let vision = &self.eagle.vision_config;
        let text = &self.eagle.text_config;
        let mut found = Vec::new();
        let mut equal = |a: (&str, usize), b: (&str, usize)| {
            if a.1 != b.1 {
                found.push(format!("{} is {}, but {} is {}", a.0, a.1, b.0, b.1));
            }
        };
        let features = g.backbone_cfg.project_to_dim.unwrap_or(text.hidden_size);
        equal(("hidden_size", g.hidden_size), ("the backbone's width", features));
        equal(
            ("action_head_cfg.backbone_embedding_dim", head.backbone_embedding_dim),
            ("the backbone's width", features),
        );
        equal(("action_dim", g.action_dim), ("action_head_cfg.action_dim", head.action_dim));
        equal(("action_head_cfg.action_dim", head.action_dim), ("max_action_dim", head.max_action_dim));
        equal(("action_horizon", g.action_horizon), ("action_head_cfg.action_horizon", head.action_horizon));
        equal(
            ("vl_self_attention heads x head_dim", adapter.inner_dim()),
            ("backbone_embedding_dim", head.backbone_embedding_dim),
        );
        equal(
            ("diffusion_model heads x head_dim", dit.inner_dim()),
            ("input_embedding_dim", head.input_embedding_dim),
        );
        equal(
            ("diffusion_model_cfg.cross_attention_dim", dit.cross_attention_dim),
            ("backbone_embedding_dim", head.backbone_embedding_dim),
        );
        equal(
            ("diffusion_model_cfg.output_dim", dit.output_dim),
            ("action_head_cfg.hidden_size", head.hidden_size),
        );
        equal(
            ("vision_config.image_size", vision.image_size),
            ("force_image_size", self.eagle.force_image_size),
        );
        let mut divides = |what: &str, a: usize, by: usize| {
            if !a.is_multiple_of(by) {
                found.push(format!("{what}: {a} is not a multiple of {by}"));
            }
        };
        divides(
            "vision_config.hidden_size by num_attention_heads",
            vision.hidden_size,
            vision.num_attention_heads,
        );
        divides("vision_config.image_size by patch_size", vision.image_size, vision.patch_size);
        divides(
            "text_config.num_attention_heads by num_key_value_heads",
            text.num_attention_heads,
            text.num_key_value_heads,
        );
        divides("text_config.head_dim by 2 (rotary pairs)", text.head_dim, 2);
        divides("input_embedding_dim by 2 (time encoding)", head.input_embedding_dim, 2);
        if head.action_horizon > head.max_seq_len {
            found.push(format!(
                "action_horizon {} is beyond the position table's {} rows",
                head.action_horizon, head.max_seq_len
            ));
        }
        if g.backbone_cfg.select_layer > text.num_hidden_layers {
            found.push(format!(
                "select_layer {} is beyond the LLM's {} layers",
                g.backbone_cfg.select_layer, text.num_hidden_layers
            ));
        }
        if self.eagle.image_token_index as usize >= text.vocab_size {
            found.push(format!(
                "image_token_index {} is outside the vocabulary of {}",
                self.eagle.image_token_index, text.vocab_size
            ));
        }
        found
    }

    fn unsupported(&self) -> Vec<String> {
        let g = &self.gr00t;
        let dit = &g.action_head_cfg.diffusion_model_cfg;
        let adapter = &g.action_head_cfg.vl_self_attention_cfg;
        let eagle = &self.eagle;
        let mut found = Vec::new();
        let mut wanted = |ok: bool, what: String| {
            if !ok {
                found.push(what);
            }
        };
        wanted(
            g.model_type == "gr00t_n1_5",
            format!("model_type is {:?}, only \"gr00t_n1_5\" (GR00T N1.5) is supported", g.model_type),
        );
        wanted(g.backbone_cfg.project_to_dim.is_none(), "project_to_dim is set, N1.5 has null".into());
        wanted(!g.backbone_cfg.reproject_vision, "reproject_vision is true, N1.5 has false".into());
        wanted(g.action_head_cfg.use_vlln, "use_vlln is false, N1.5 has true".into());
        wanted(g.action_head_cfg.add_pos_embed, "add_pos_embed is false, N1.5 has true".into());
        wanted(dit.interleave_self_attention, "interleave_self_attention is false, N1.5 has true".into());
        wanted(
            dit.norm_type == "ada_norm",
            format!("norm_type is {:?}, N1.5 has \"ada_norm\"", dit.norm_type),
        );
        wanted(
            dit.positional_embeddings.is_none() && adapter.positional_embeddings.is_none(),
            "positional_embeddings is set, N1.5 has null".into(),
        );
        wanted(!eagle.use_pixel_shuffle, "use_pixel_shuffle is true, N1.5 has false".into());
        wanted(
            eagle.vision_config.num_channels == CHANNELS,
            format!("vision num_channels is {}, images have {CHANNELS}", eagle.vision_config.num_channels),
        );
        wanted(
            eagle.mlp_connector_layers == 1,
            format!("mlp_connector_layers is {}, N1.5 has 1", eagle.mlp_connector_layers),
        );
        wanted(
            eagle.select_layer == -1,
            format!("vision select_layer is {}, N1.5 has -1", eagle.select_layer),
        );
        wanted(
            eagle.vision_config.hidden_act == "gelu_pytorch_tanh",
            format!(
                "vision hidden_act is {:?}, N1.5 has \"gelu_pytorch_tanh\"",
                eagle.vision_config.hidden_act
            ),
        );
        wanted(
            eagle.text_config.hidden_act == "silu",
            format!("text hidden_act is {:?}, N1.5 has \"silu\"", eagle.text_config.hidden_act),
        );
        wanted(!eagle.text_config.attention_bias, "text attention_bias is true, N1.5 has false".into());
        wanted(!eagle.text_config.use_sliding_window, "use_sliding_window is true, N1.5 has false".into());
        wanted(eagle.text_config.rope_scaling.is_none(), "rope_scaling is set, N1.5 has null".into());
        wanted(!dit.norm_elementwise_affine, "norm_elementwise_affine is true, N1.5 has false".into());
        for (name, activation, bias, eps) in [
            ("diffusion_model_cfg", &dit.activation_fn, dit.attention_bias, dit.norm_eps),
            ("vl_self_attention_cfg", &adapter.activation_fn, adapter.attention_bias, adapter.norm_eps),
        ] {
            wanted(
                activation == BLOCK_ACTIVATION,
                format!("{name}.activation_fn is {activation:?}, N1.5 has {BLOCK_ACTIVATION:?}"),
            );
            wanted(bias, format!("{name}.attention_bias is false, N1.5 has true"));
            wanted(
                eps.to_bits() == BLOCK_NORM_EPS.to_bits(),
                format!("{name}.norm_eps is {eps:e}, N1.5 has {BLOCK_NORM_EPS:e}"),
            );
        }
        found
    }
}
