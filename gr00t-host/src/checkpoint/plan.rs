//! The tensors that a checkpoint of a given [`ModelConfig`] must hold: names, shapes, and what each is for.
//!
//! Names are those of NVIDIA's `GR00T_N1_5` module tree: SigLIP (`modeling_siglip.py`) and Qwen3
//! (`modeling_qwen3.py`) under `backbone.eagle_model`, and `flow_matching_action_head.py` with
//! `cross_attention_dit.py` under `action_head`.

use crate::ModelConfig;

/// Width of the sinusoidal time encoding that enters the DiT's timestep MLP (diffusers' `Timesteps`, fixed).
const TIME_CHANNELS: usize = 256;
/// Width of a transformer block's MLP over its token width (diffusers' `FeedForward`).
const FEED_FORWARD_FACTOR: usize = 4;

/// The part of the model that a tensor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Part {
    /// SigLIP 2 vision tower: embeddings, layers, final norm.
    Vision,
    /// SigLIP's pooling head, which GR00T never evaluates.
    VisionHead,
    /// `mlp1`, vision width to LLM width.
    Connector,
    /// The LLM's token table.
    TokenEmbedding,
    /// Qwen3 layers and final norm.
    Llm,
    /// The LLM's output projection, which GR00T never evaluates.
    LmHead,
    /// `vl_self_attention`.
    Adapter,
    /// The diffusion transformer.
    Dit,
    /// The rest of the action head: `vlln`, state and action encoders, decoder, tables.
    ActionHead,
}

impl Part {
    /// All parts, in the order in which a request passes through them.
    pub const ALL: [Self; 9] = [
        Self::Vision,
        Self::VisionHead,
        Self::Connector,
        Self::TokenEmbedding,
        Self::Llm,
        Self::LmHead,
        Self::Adapter,
        Self::Dit,
        Self::ActionHead,
    ];

    /// Short name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::VisionHead => "vision head",
            Self::Connector => "connector",
            Self::TokenEmbedding => "token embedding",
            Self::Llm => "llm",
            Self::LmHead => "lm head",
            Self::Adapter => "adapter",
            Self::Dit => "dit",
            Self::ActionHead => "action head",
        }
    }

    /// Whether inference reads this part.
    pub const fn needed(self) -> bool {
        !matches!(self, Self::VisionHead | Self::LmHead)
    }
}

/// One tensor that a checkpoint of a given configuration holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Full dotted name.
    pub name: String,
    /// Shape, row-major.
    pub shape: Vec<usize>,
    /// Whether inference reads it; the others may be absent.
    pub needed: bool,
    /// What it belongs to.
    pub part: Part,
}

/// Every tensor of a checkpoint of `config`, in the order of the model's modules.
pub fn expected_tensors(config: &ModelConfig) -> Vec<ExpectedTensor> {
    let mut plan = Plan(Vec::new());
    let eagle = Path(String::from("backbone.eagle_model"));
    plan.vision(config, &eagle.at("vision_model.vision_model"));
    plan.llm(config, &eagle.at("language_model"));
    let features = config.eagle.text_config.hidden_size;
    plan.linear(Part::Connector, &eagle.at("mlp1.0"), features, config.eagle.vision_config.hidden_size);
    let head = Path(String::from("action_head"));
    plan.dit(config, &head.at("model"));
    plan.state_action(config, &head);
    plan.adapter(config, &head);
    plan.0
}

/// A dotted place.
struct Path(String);

impl Path {
    fn at(&self, part: impl std::fmt::Display) -> Self {
        Self(format!("{}.{part}", self.0))
    }
}

struct Plan(Vec<ExpectedTensor>);

impl Plan {
    fn tensor(&mut self, part: Part, path: &Path, leaf: &str, shape: &[usize]) {
        self.0.push(ExpectedTensor {
            name: format!("{}.{leaf}", path.0),
            shape: shape.to_vec(),
            needed: part.needed(),
            part,
        });
    }

    fn linear(&mut self, part: Part, path: &Path, outputs: usize, inputs: usize) {
        self.tensor(part, path, "weight", &[outputs, inputs]);
        self.tensor(part, path, "bias", &[outputs]);
    }

    fn layer_norm(&mut self, part: Part, path: &Path, width: usize) {
        self.tensor(part, path, "weight", &[width]);
        self.tensor(part, path, "bias", &[width]);
    }

    fn vision(&mut self, config: &ModelConfig, path: &Path) {
        let vision = &config.eagle.vision_config;
        let (width, inner, part) = (vision.hidden_size, vision.intermediate_size, Part::Vision);
        let embeddings = path.at("embeddings");
        let patch = [width, vision.num_channels, vision.patch_size, vision.patch_size];
        self.tensor(part, &embeddings, "patch_embedding.weight", &patch);
        self.tensor(part, &embeddings, "patch_embedding.bias", &[width]);
        self.tensor(part, &embeddings, "position_embedding.weight", &[vision.num_patches(), width]);
        for index in 0..vision.num_hidden_layers {
            let layer = path.at("encoder.layers").at(index);
            self.layer_norm(part, &layer.at("layer_norm1"), width);
            for projection in ["k_proj", "v_proj", "q_proj", "out_proj"] {
                self.linear(part, &layer.at("self_attn").at(projection), width, width);
            }
            self.layer_norm(part, &layer.at("layer_norm2"), width);
            self.linear(part, &layer.at("mlp.fc1"), inner, width);
            self.linear(part, &layer.at("mlp.fc2"), width, inner);
        }
        self.layer_norm(part, &path.at("post_layernorm"), width);

        let (head, part) = (path.at("head"), Part::VisionHead);
        self.tensor(part, &head, "probe", &[1, 1, width]);
        self.tensor(part, &head, "attention.in_proj_weight", &[3 * width, width]);
        self.tensor(part, &head, "attention.in_proj_bias", &[3 * width]);
        self.linear(part, &head.at("attention.out_proj"), width, width);
        self.layer_norm(part, &head.at("layernorm"), width);
        self.linear(part, &head.at("mlp.fc1"), inner, width);
        self.linear(part, &head.at("mlp.fc2"), width, inner);
    }

    fn llm(&mut self, config: &ModelConfig, path: &Path) {
        let text = &config.eagle.text_config;
        let (width, part) = (text.hidden_size, Part::Llm);
        let queries = text.num_attention_heads * text.head_dim;
        let keys = text.num_key_value_heads * text.head_dim;
        let model = path.at("model");
        self.tensor(Part::TokenEmbedding, &model, "embed_tokens.weight", &[text.vocab_size, width]);
        for index in 0..config.gr00t.backbone_cfg.select_layer {
            let layer = model.at("layers").at(index);
            let attention = layer.at("self_attn");
            self.tensor(part, &attention, "q_proj.weight", &[queries, width]);
            self.tensor(part, &attention, "k_proj.weight", &[keys, width]);
            self.tensor(part, &attention, "v_proj.weight", &[keys, width]);
            self.tensor(part, &attention, "o_proj.weight", &[width, queries]);
            self.tensor(part, &attention, "q_norm.weight", &[text.head_dim]);
            self.tensor(part, &attention, "k_norm.weight", &[text.head_dim]);
            self.tensor(part, &layer, "mlp.gate_proj.weight", &[text.intermediate_size, width]);
            self.tensor(part, &layer, "mlp.up_proj.weight", &[text.intermediate_size, width]);
            self.tensor(part, &layer, "mlp.down_proj.weight", &[width, text.intermediate_size]);
            self.tensor(part, &layer, "input_layernorm.weight", &[width]);
            self.tensor(part, &layer, "post_attention_layernorm.weight", &[width]);
        }
        self.tensor(part, &model, "norm.weight", &[width]);
        self.tensor(Part::LmHead, path, "lm_head.weight", &[text.vocab_size, width]);
    }

    fn dit(&mut self, config: &ModelConfig, path: &Path) {
        let dit = &config.gr00t.action_head_cfg.diffusion_model_cfg;
        let (width, part) = (dit.inner_dim(), Part::Dit);
        let time = path.at("timestep_encoder.timestep_embedder");
        self.linear(part, &time.at("linear_1"), width, TIME_CHANNELS);
        self.linear(part, &time.at("linear_2"), width, width);
        for index in 0..dit.num_layers {
            let block = path.at("transformer_blocks").at(index);
            let memory = if index % 2 == 0 { dit.cross_attention_dim } else { width };
            self.linear(part, &block.at("norm1.linear"), 2 * width, width);
            self.attention(part, &block.at("attn1"), width, memory);
            self.feed_forward(part, &block.at("ff.net"), width);
        }
        self.linear(part, &path.at("proj_out_1"), 2 * width, width);
        self.linear(part, &path.at("proj_out_2"), dit.output_dim, width);
    }

    fn adapter(&mut self, config: &ModelConfig, head: &Path) {
        let adapter = &config.gr00t.action_head_cfg.vl_self_attention_cfg;
        let (width, part) = (adapter.inner_dim(), Part::Adapter);
        for index in 0..adapter.num_layers {
            let block = head.at("vl_self_attention.transformer_blocks").at(index);
            self.layer_norm(part, &block.at("norm1"), width);
            self.attention(part, &block.at("attn1"), width, width);
            self.layer_norm(part, &block.at("norm3"), width);
            self.feed_forward(part, &block.at("ff.net"), width);
        }
    }

    fn attention(&mut self, part: Part, path: &Path, width: usize, memory: usize) {
        self.linear(part, &path.at("to_q"), width, width);
        self.linear(part, &path.at("to_k"), width, memory);
        self.linear(part, &path.at("to_v"), width, memory);
        self.linear(part, &path.at("to_out.0"), width, width);
    }

    fn feed_forward(&mut self, part: Part, path: &Path, width: usize) {
        self.linear(part, &path.at("0.proj"), FEED_FORWARD_FACTOR * width, width);
        self.linear(part, &path.at("2"), width, FEED_FORWARD_FACTOR * width);
    }

    fn state_action(&mut self, config: &ModelConfig, path: &Path) {
        let head = &config.gr00t.action_head_cfg;
        let (hidden, tokens, actions) = (head.hidden_size, head.input_embedding_dim, head.action_dim);
        let layers = [
            ("state_encoder.layer1", head.max_state_dim, hidden),
            ("state_encoder.layer2", hidden, tokens),
            ("action_encoder.W1", actions, tokens),
            ("action_encoder.W2", 2 * tokens, tokens),
            ("action_encoder.W3", tokens, tokens),
            ("action_decoder.layer1", hidden, hidden),
            ("action_decoder.layer2", hidden, actions),
        ];
        let (slots, part) = (head.max_num_embodiments, Part::ActionHead);
        for (name, inputs, outputs) in layers {
            let layer = path.at(name);
            self.tensor(part, &layer, "W", &[slots, inputs, outputs]);
            self.tensor(part, &layer, "b", &[slots, outputs]);
        }
        self.tensor(part, path, "future_tokens.weight", &[head.num_target_vision_tokens, tokens]);
        self.layer_norm(part, &path.at("vlln"), head.backbone_embedding_dim);
        self.tensor(part, path, "position_embedding.weight", &[head.max_seq_len, tokens]);
    }
}
