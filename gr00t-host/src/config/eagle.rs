//! The Eagle 2.5 backbone's configuration: SigLIP 2 vision tower, Qwen3 LLM.
//!
//! In N1.5 this file is not part of the checkpoint but of NVIDIA's package
//! (`gr00t/model/backbone/eagle2_hg_model/config.json`); the defaults are its values.

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EagleConfig {
    /// Vision tower.
    pub vision_config: VisionConfig,
    /// Language model.
    pub text_config: TextConfig,
    /// Token that image features replace.
    pub image_token_index: u32,
    /// Side of the square image that the tower sees, in pixels.
    pub force_image_size: usize,
    /// Which of the tower's hidden states is used; -1 is the post-norm output.
    pub select_layer: i64,
    /// Linear layers of the connector `mlp1`.
    pub mlp_connector_layers: usize,
    /// Whether 2×2 patches are folded into one token; false in N1.5.
    pub use_pixel_shuffle: bool,
}

impl Default for EagleConfig {
    fn default() -> Self {
        Self {
            vision_config: VisionConfig::default(),
            text_config: TextConfig::default(),
            image_token_index: 151_669,
            force_image_size: 224,
            select_layer: -1,
            mlp_connector_layers: 1,
            use_pixel_shuffle: false,
        }
    }
}

impl EagleConfig {
    /// Image tokens per view.
    pub fn tokens_per_view(&self) -> usize {
        self.vision_config.num_patches()
    }
}

/// `vision_config`: SigLIP (`modeling_siglip.py`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VisionConfig {
    /// Token width.
    pub hidden_size: usize,
    /// Width of the MLP.
    pub intermediate_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Attention heads.
    pub num_attention_heads: usize,
    /// Colour channels.
    pub num_channels: usize,
    /// Side of the square image, in pixels.
    pub image_size: usize,
    /// Side of one patch, in pixels.
    pub patch_size: usize,
    /// LayerNorm's epsilon.
    pub layer_norm_eps: f64,
    /// Activation of the MLP.
    pub hidden_act: String,
}

impl Default for VisionConfig {
    fn default() -> Self {
        Self {
            hidden_size: 1152,
            intermediate_size: 4304,
            num_hidden_layers: 27,
            num_attention_heads: 16,
            num_channels: 3,
            image_size: 224,
            patch_size: 14,
            layer_norm_eps: 1e-6,
            hidden_act: "gelu_pytorch_tanh".into(),
        }
    }
}

impl VisionConfig {
    /// Width of one head.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }

    /// Tokens per image.
    pub fn num_patches(&self) -> usize {
        (self.image_size / self.patch_size).pow(2)
    }
}

/// `text_config`: Qwen3 (`modeling_qwen3.py`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextConfig {
    /// Token width.
    pub hidden_size: usize,
    /// Width of the MLP.
    pub intermediate_size: usize,
    /// Layers of the full model; only `select_layer` of them are in the checkpoint.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// RMSNorm's epsilon.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Rows of the embedding table.
    pub vocab_size: usize,
    /// Longest sequence.
    pub max_position_embeddings: usize,
    /// Activation of the MLP.
    pub hidden_act: String,
    /// Whether the attention projections have biases; false in Qwen3.
    pub attention_bias: bool,
    /// Whether attention is limited to a window; false in Qwen3.
    pub use_sliding_window: bool,
    /// Stretching of the rotary positions; none in N1.5.
    pub rope_scaling: Option<serde_json::Value>,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self {
            hidden_size: 2048,
            intermediate_size: 6144,
            num_hidden_layers: 28,
            num_attention_heads: 16,
            num_key_value_heads: 8,
            head_dim: 128,
            rms_norm_eps: 1e-6,
            rope_theta: 1e6,
            vocab_size: 151_680,
            max_position_embeddings: 40_960,
            hidden_act: "silu".into(),
            attention_bias: false,
            use_sliding_window: false,
            rope_scaling: None,
        }
    }
}
