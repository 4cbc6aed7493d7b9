//! Qwen3 LLM, up to the hidden state that the policy reads.
//!
//! Mirrors `Qwen3Model` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/qwen3/modeling_qwen3.py> and the
//! splicing of image features in Eagle's `modeling_eagle2_5_vl.py`. Of the LLM only the first
//! `select_layer` layers exist
//! (<https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/backbone/eagle_backbone.py>), and the last
//! entry of `hidden_states` is after the final norm.

use gr00t_host::Weights;
use gr00t_host::config::{EagleConfig, TextConfig};
use ndarray::{Array2, ArrayView1, Axis, Zip};

use crate::nn::{Heads, Linear, Mask, RmsNorm, attention, silu};
use crate::{Observer, Part, Result};

/// Token ids and image tokens to `backbone_features` `[S, hidden_size]`, through `layers` layers.
///
/// The number of image tokens in `input_ids` equals the rows of `image_features`, and every id is in the vocabulary.
pub(crate) fn language_model(
    config: &EagleConfig,
    layers: usize,
    weights: &Weights,
    input_ids: &[u32],
    image_features: &Array2<f32>,
    observer: &mut dyn Observer,
) -> Result<Array2<f32>> {
    let text = &config.text_config;
    let mut x = inputs_embeds(config, &weights.pp("embed_tokens"), input_ids, image_features)?;
    observer.stage("llm.inputs_embeds", x.view());

    let rotary = RotaryEmbedding::new(text, input_ids.len());
    for i in 0..layers {
        x = Qwen3DecoderLayer::new(text, &weights.pp("layers").pp(i))?.forward(x, &rotary)?;
        observer.stage(&format!("llm.layer.{i}"), x.view());
        observer.progress(Part::Llm, i + 1, layers);
    }

    let x = RmsNorm::new(text.hidden_size, text.rms_norm_eps, &weights.pp("norm"))?.forward(&x);
    observer.stage("llm.norm", x.view());
    // `eagle_linear` is the identity in N1.5
    observer.stage("backbone.features", x.view());
    Ok(x)
}

/// Rows of the embedding table; image tokens are replaced, in order, by the image features.
fn inputs_embeds(
    config: &EagleConfig,
    embed_tokens: &Weights,
    input_ids: &[u32],
    image_features: &Array2<f32>,
) -> Result<Array2<f32>> {
    let &TextConfig { vocab_size, hidden_size, .. } = &config.text_config;
    let mut x = Array2::zeros((input_ids.len(), hidden_size));
    let mut image_features = image_features.rows().into_iter();
    for (mut row, &id) in x.rows_mut().into_iter().zip(input_ids) {
        let image_feature = if id == config.image_token_index { image_features.next() } else { None };
        if let Some(feature) = image_feature {
            row.assign(&feature);
        } else {
            let id = id as usize;
            let embedding = embed_tokens.f32_rows("weight", &[vocab_size, hidden_size], id..id + 1)?;
            row.assign(&ArrayView1::from(&embedding));
        }
    }
    Ok(x)
}

/// `Qwen3DecoderLayer`: pre-norm attention and gated MLP.
struct Qwen3DecoderLayer {
    input_layernorm: RmsNorm,
    self_attn: Qwen3Attention,
    post_attention_layernorm: RmsNorm,
    mlp: Qwen3Mlp,
}

impl Qwen3DecoderLayer {
    fn new(config: &TextConfig, weights: &Weights) -> Result<Self> {
        let norm = |name| RmsNorm::new(config.hidden_size, config.rms_norm_eps, &weights.pp(name));
        Ok(Self {
            input_layernorm: norm("input_layernorm")?,
            self_attn: Qwen3Attention::new(config, &weights.pp("self_attn"))?,
            post_attention_layernorm: norm("post_attention_layernorm")?,
            mlp: Qwen3Mlp::new(config, &weights.pp("mlp"))?,
        })
    }

    fn forward(&self, mut x: Array2<f32>, rotary: &RotaryEmbedding) -> Result<Array2<f32>> {
        x += &self.self_attn.forward(&self.input_layernorm.forward(&x), rotary)?;
        x += &self.mlp.forward(&self.post_attention_layernorm.forward(&x));
        Ok(x)
    }
}

/// `Qwen3Attention`: grouped queries, per-head norms before the rotation, causal over everything.
struct Qwen3Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    heads: Heads,
}

impl Qwen3Attention {
    fn new(config: &TextConfig, weights: &Weights) -> Result<Self> {
        let (dim, head_dim, eps) = (config.hidden_size, config.head_dim, config.rms_norm_eps);
        let heads =
            Heads { query: config.num_attention_heads, key_value: config.num_key_value_heads, dim: head_dim };
        Ok(Self {
            q_proj: Linear::no_bias(dim, heads.query_dim(), &weights.pp("q_proj"))?,
            k_proj: Linear::no_bias(dim, heads.key_value_dim(), &weights.pp("k_proj"))?,
            v_proj: Linear::no_bias(dim, heads.key_value_dim(), &weights.pp("v_proj"))?,
            o_proj: Linear::no_bias(heads.query_dim(), dim, &weights.pp("o_proj"))?,
            q_norm: RmsNorm::new(head_dim, eps, &weights.pp("q_norm"))?,
            k_norm: RmsNorm::new(head_dim, eps, &weights.pp("k_norm"))?,
            heads,
        })
    }

    fn forward(&self, x: &Array2<f32>, rotary: &RotaryEmbedding) -> Result<Array2<f32>> {
        let q = rotary.forward(norm_heads(&self.q_norm, self.q_proj.forward(x), self.heads.dim)?);
        let k = rotary.forward(norm_heads(&self.k_norm, self.k_proj.forward(x), self.heads.dim)?);
        let v = self.v_proj.forward(x);
        Ok(self.o_proj.forward(&attention(&q, &k, &v, self.heads, Mask::Causal)))
    }
}

/// `norm` over each head of `x [S, heads x head_dim]`.
fn norm_heads(norm: &RmsNorm, x: Array2<f32>, head_dim: usize) -> Result<Array2<f32>> {
    let (rows, width) = x.dim();
    let heads = x.into_shape_with_order((rows * width / head_dim, head_dim))?;
    Ok(norm.forward(&heads).into_shape_with_order((rows, width))?)
}

/// `Qwen3RotaryEmbedding` and `apply_rotary_pos_emb`: element j of a head is paired with element j + head_dim / 2.
struct RotaryEmbedding {
    /// `[S, head_dim / 2]`.
    cos: Array2<f32>,
    sin: Array2<f32>,
}

impl RotaryEmbedding {
    /// Angles of the positions 0..S, in f32 as upstream.
    fn new(config: &TextConfig, positions: usize) -> Self {
        let (dim, theta) = (config.head_dim, config.rope_theta as f32);
        let angle = Array2::from_shape_fn((positions, dim / 2), |(position, j)| {
            let inv_freq = 1.0 / theta.powf((2 * j) as f32 / dim as f32);
            position as f32 * inv_freq
        });
        Self { cos: angle.mapv(f32::cos), sin: angle.mapv(f32::sin) }
    }

    /// Rotates every head of `x [S, heads x head_dim]`.
    fn forward(&self, mut x: Array2<f32>) -> Array2<f32> {
        let half = self.cos.ncols();
        for ((mut row, cos), sin) in x.rows_mut().into_iter().zip(self.cos.rows()).zip(self.sin.rows()) {
            for mut head in row.exact_chunks_mut(2 * half) {
                let (first, second) = head.view_mut().split_at(Axis(0), half);
                Zip::from(first).and(second).and(cos).and(sin).for_each(|a, b, cos, sin| {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                });
            }
        }
        x
    }
}

/// `Qwen3MLP`.
#[expect(clippy::struct_field_names, reason = "upstream's names")]
struct Qwen3Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

impl Qwen3Mlp {
    fn new(config: &TextConfig, weights: &Weights) -> Result<Self> {
        let (dim, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            gate_proj: Linear::no_bias(dim, inner, &weights.pp("gate_proj"))?,
            up_proj: Linear::no_bias(dim, inner, &weights.pp("up_proj"))?,
            down_proj: Linear::no_bias(inner, dim, &weights.pp("down_proj"))?,
        })
    }

    fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        self.down_proj.forward(&(silu(self.gate_proj.forward(x)) * self.up_proj.forward(x)))
    }
}
