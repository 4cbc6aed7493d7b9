//! NVIDIA's `config.json` of a GR00T N1.5 checkpoint.
//!
//! Field names and meanings are those of `gr00t/model/gr00t_n1.py` and
//! `gr00t/model/action_head/flow_matching_action_head.py`; defaults are N1.5-3B's values, for files that lack a
//! field. Fields that inference does not read are not kept.

use serde::{Deserialize, Serialize};

/// Activation and LayerNorm epsilon of the transformer blocks of DiT and adapter, defaults of both classes upstream.
pub(super) const BLOCK_ACTIVATION: &str = "gelu-approximate";
/// See [`BLOCK_ACTIVATION`].
pub(super) const BLOCK_NORM_EPS: f64 = 1e-5;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gr00tConfig {
    /// `["GR00T_N1_5"]`.
    pub architectures: Vec<String>,
    /// `gr00t_n1_5`.
    pub model_type: String,
    /// Width of the action vector.
    pub action_dim: usize,
    /// Time steps of one action chunk.
    pub action_horizon: usize,
    /// Width of the backbone's features.
    pub hidden_size: usize,
    /// The dtype that the checkpoint is stored in.
    pub torch_dtype: String,
    /// Vision-language backbone.
    pub backbone_cfg: BackboneConfig,
    /// Flow-matching action head.
    pub action_head_cfg: ActionHeadConfig,
}

impl Default for Gr00tConfig {
    fn default() -> Self {
        Self {
            architectures: vec!["GR00T_N1_5".into()],
            model_type: "gr00t_n1_5".into(),
            action_dim: 32,
            action_horizon: 16,
            hidden_size: 2048,
            torch_dtype: "bfloat16".into(),
            backbone_cfg: BackboneConfig::default(),
            action_head_cfg: ActionHeadConfig::default(),
        }
    }
}

/// `backbone_cfg`: how the Eagle model is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackboneConfig {
    /// Width of `eagle_linear`; `None` (N1.5) makes it the identity.
    pub project_to_dim: Option<usize>,
    /// Number of LLM layers that are built and evaluated.
    pub select_layer: usize,
    /// Whether vision features would be projected back; false in N1.5.
    pub reproject_vision: bool,
}

impl Default for BackboneConfig {
    fn default() -> Self {
        Self { project_to_dim: None, select_layer: 12, reproject_vision: false }
    }
}

/// `action_head_cfg`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionHeadConfig {
    /// Width of the action vector.
    pub action_dim: usize,
    /// Time steps of one action chunk.
    pub action_horizon: usize,
    /// Whether learned positions are added to the action tokens.
    pub add_pos_embed: bool,
    /// Width of the backbone's features.
    pub backbone_embedding_dim: usize,
    /// Width of the state encoder's and decoder's hidden layer, and of the DiT's output.
    pub hidden_size: usize,
    /// Width of the DiT's tokens.
    pub input_embedding_dim: usize,
    /// Widest action vector.
    pub max_action_dim: usize,
    /// Width that the state is padded to.
    pub max_state_dim: usize,
    /// Euler steps of the flow.
    pub num_inference_timesteps: usize,
    /// Number of learned future tokens.
    pub num_target_vision_tokens: usize,
    /// Number of discrete flow times.
    pub num_timestep_buckets: usize,
    /// Whether the features pass `vlln` and `vl_self_attention`.
    pub use_vlln: bool,
    /// Number of slots of the category-specific weights.
    pub max_num_embodiments: usize,
    /// Rows of the action position table.
    pub max_seq_len: usize,
    /// The DiT.
    pub diffusion_model_cfg: DiffusionModelConfig,
    /// The adapter.
    pub vl_self_attention_cfg: VlSelfAttentionConfig,
}

impl Default for ActionHeadConfig {
    fn default() -> Self {
        Self {
            action_dim: 32,
            action_horizon: 16,
            add_pos_embed: true,
            backbone_embedding_dim: 2048,
            hidden_size: 1024,
            input_embedding_dim: 1536,
            max_action_dim: 32,
            max_state_dim: 64,
            num_inference_timesteps: 4,
            num_target_vision_tokens: 32,
            num_timestep_buckets: 1000,
            use_vlln: true,
            max_num_embodiments: 32,
            max_seq_len: 1024,
            diffusion_model_cfg: DiffusionModelConfig::default(),
            vl_self_attention_cfg: VlSelfAttentionConfig::default(),
        }
    }
}

/// `diffusion_model_cfg`: the DiT (`cross_attention_dit.py`, class `DiT`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiffusionModelConfig {
    /// Width of one head.
    pub attention_head_dim: usize,
    /// Heads per block.
    pub num_attention_heads: usize,
    /// Width of the cross-attention memory.
    pub cross_attention_dim: usize,
    /// Blocks; even ones attend to the memory, odd ones to the tokens.
    pub num_layers: usize,
    /// Width of the output.
    pub output_dim: usize,
    /// Whether odd blocks are self-attention.
    pub interleave_self_attention: bool,
    /// `ada_norm`.
    pub norm_type: String,
    /// Position embeddings inside the DiT: none in N1.5.
    pub positional_embeddings: Option<String>,
    /// Activation of the MLPs.
    pub activation_fn: String,
    /// Whether the attention projections have biases; true in N1.5.
    pub attention_bias: bool,
    /// Whether the blocks' norms have weights of their own; false in N1.5, whose scales come from the time embedding.
    pub norm_elementwise_affine: bool,
    /// LayerNorm's epsilon in the blocks.
    pub norm_eps: f64,
}

impl Default for DiffusionModelConfig {
    fn default() -> Self {
        Self {
            attention_head_dim: 48,
            num_attention_heads: 32,
            cross_attention_dim: 2048,
            num_layers: 16,
            output_dim: 1024,
            interleave_self_attention: true,
            norm_type: "ada_norm".into(),
            positional_embeddings: None,
            activation_fn: BLOCK_ACTIVATION.into(),
            attention_bias: true,
            norm_elementwise_affine: false,
            norm_eps: BLOCK_NORM_EPS,
        }
    }
}

impl DiffusionModelConfig {
    /// Width of the tokens.
    pub fn inner_dim(&self) -> usize {
        self.attention_head_dim * self.num_attention_heads
    }
}

/// `vl_self_attention_cfg`: the adapter (`cross_attention_dit.py`, class `SelfAttentionTransformer`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VlSelfAttentionConfig {
    /// Width of one head.
    pub attention_head_dim: usize,
    /// Heads per block.
    pub num_attention_heads: usize,
    /// Blocks.
    pub num_layers: usize,
    /// Position embeddings: none in N1.5.
    pub positional_embeddings: Option<String>,
    /// Activation of the MLPs.
    pub activation_fn: String,
    /// Whether the attention projections have biases; true in N1.5.
    pub attention_bias: bool,
    /// LayerNorm's epsilon.
    pub norm_eps: f64,
}

impl Default for VlSelfAttentionConfig {
    fn default() -> Self {
        Self {
            attention_head_dim: 64,
            num_attention_heads: 32,
            num_layers: 4,
            positional_embeddings: None,
            activation_fn: BLOCK_ACTIVATION.into(),
            attention_bias: true,
            norm_eps: BLOCK_NORM_EPS,
        }
    }
}

impl VlSelfAttentionConfig {
    /// Width of the tokens.
    pub fn inner_dim(&self) -> usize {
        self.attention_head_dim * self.num_attention_heads
    }
}
