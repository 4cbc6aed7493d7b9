//! SigLIP 2 vision tower and Eagle's connector `mlp1`.
//!
//! Mirrors `SiglipVisionTransformer` of
//! <https://github.com/huggingface/transformers/blob/v4.51.3/src/transformers/models/siglip/modeling_siglip.py> without
//! the pooling head, and `extract_feature` of Eagle's `modeling_eagle2_5_vl.py`
//! (<https://github.com/NVIDIA/Isaac-GR00T/tree/n1.5-release/gr00t/model/backbone/eagle2_hg_model>).

use gr00t_host::config::{EagleConfig, VisionConfig};
use gr00t_host::{ModelInputs, Weights};
use ndarray::{Array1, Array2, ArrayView4, Axis};

use crate::nn::{Heads, LayerNorm, Linear, Mask, attention, gelu_tanh};
use crate::{Observer, Part, Result};

/// `extract_feature`: pixels of all views to image tokens `[views x tokens, text hidden_size]`.
pub(crate) fn extract_feature(
    config: &EagleConfig,
    weights: &Weights,
    inputs: &ModelInputs,
    observer: &mut dyn Observer,
) -> Result<Array2<f32>> {
    let vision = &config.vision_config;
    let x = vision_model(vision, &weights.pp("vision_model").pp("vision_model"), inputs, observer)?;
    let mlp1 = Linear::new(vision.hidden_size, config.text_config.hidden_size, &weights.pp("mlp1").pp(0))?;
    let x = mlp1.forward(&x);
    observer.stage("vision.mlp1", x.view());
    Ok(x)
}

/// `SiglipVisionTransformer`: `last_hidden_state`, which is after `post_layernorm`.
fn vision_model(
    config: &VisionConfig,
    weights: &Weights,
    inputs: &ModelInputs,
    observer: &mut dyn Observer,
) -> Result<Array2<f32>> {
    let side = config.image_size;
    let pixels = ArrayView4::from_shape(
        (inputs.views, config.num_channels, side, side),
        inputs.pixel_values.as_slice(),
    )?;
    let mut x = SiglipVisionEmbeddings::new(config, &weights.pp("embeddings"))?.forward(&pixels)?;
    observer.stage("vision.embeddings", x.view());

    let layers = weights.pp("encoder").pp("layers");
    for i in 0..config.num_hidden_layers {
        x = SiglipEncoderLayer::new(config, &layers.pp(i))?.forward(x);
        observer.stage(&format!("vision.layer.{i}"), x.view());
        observer.progress(Part::Vision, i + 1, config.num_hidden_layers);
    }

    let post_layernorm =
        LayerNorm::new(config.hidden_size, config.layer_norm_eps, &weights.pp("post_layernorm"))?;
    let x = post_layernorm.forward(&x);
    observer.stage("vision.post_layernorm", x.view());
    Ok(x)
}

/// `SiglipVisionEmbeddings`: a convolution whose stride is its kernel, so one matmul over flattened patches.
struct SiglipVisionEmbeddings {
    patch_embedding: Linear,
    position_embedding: Array2<f32>,
    patch_size: usize,
}

impl SiglipVisionEmbeddings {
    fn new(config: &VisionConfig, weights: &Weights) -> Result<Self> {
        let &VisionConfig { hidden_size, num_channels, patch_size, .. } = config;
        let conv = weights.pp("patch_embedding");
        let kernel = conv.f32("weight", &[hidden_size, num_channels, patch_size, patch_size])?;
        let patch = num_channels * patch_size * patch_size;
        let table = weights.pp("position_embedding").f32("weight", &[config.num_patches(), hidden_size])?;
        Ok(Self {
            patch_embedding: Linear {
                weight: Array2::from_shape_vec((hidden_size, patch), kernel)?,
                bias: Some(Array1::from_vec(conv.f32("bias", &[hidden_size])?)),
            },
            position_embedding: Array2::from_shape_vec((config.num_patches(), hidden_size), table)?,
            patch_size,
        })
    }

    /// `[views, channels, side, side]` to `[views x patches, hidden]`, patches in row-major order.
    fn forward(&self, pixels: &ArrayView4<'_, f32>) -> Result<Array2<f32>> {
        let (views, channels, side, _) = pixels.dim();
        let (p, grid) = (self.patch_size, side / self.patch_size);
        // [view, channel, patch row, row, patch column, column] -> [view, patch row, patch column, channel, row, column]
        let patches = pixels
            .to_shape((views, channels, grid, p, grid, p))?
            .permuted_axes([0, 2, 4, 1, 3, 5])
            .to_shape((views * grid * grid, channels * p * p))?
            .to_owned();
        let mut x = self.patch_embedding.forward(&patches);
        for mut view in x.axis_chunks_iter_mut(Axis(0), grid * grid) {
            view += &self.position_embedding;
        }
        Ok(x)
    }
}

/// `SiglipEncoderLayer`: pre-norm attention and MLP.
struct SiglipEncoderLayer {
    layer_norm1: LayerNorm,
    self_attn: SiglipAttention,
    layer_norm2: LayerNorm,
    mlp: SiglipMlp,
}

impl SiglipEncoderLayer {
    fn new(config: &VisionConfig, weights: &Weights) -> Result<Self> {
        let (dim, eps) = (config.hidden_size, config.layer_norm_eps);
        Ok(Self {
            layer_norm1: LayerNorm::new(dim, eps, &weights.pp("layer_norm1"))?,
            self_attn: SiglipAttention::new(config, &weights.pp("self_attn"))?,
            layer_norm2: LayerNorm::new(dim, eps, &weights.pp("layer_norm2"))?,
            mlp: SiglipMlp::new(config, &weights.pp("mlp"))?,
        })
    }

    fn forward(&self, mut x: Array2<f32>) -> Array2<f32> {
        x += &self.self_attn.forward(&self.layer_norm1.forward(&x));
        x += &self.mlp.forward(&self.layer_norm2.forward(&x));
        x
    }
}

/// `SiglipAttention`: full attention within each view.
struct SiglipAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    heads: Heads,
    tokens_per_view: usize,
}

impl SiglipAttention {
    fn new(config: &VisionConfig, weights: &Weights) -> Result<Self> {
        let dim = config.hidden_size;
        let linear = |name| Linear::new(dim, dim, &weights.pp(name));
        Ok(Self {
            q_proj: linear("q_proj")?,
            k_proj: linear("k_proj")?,
            v_proj: linear("v_proj")?,
            out_proj: linear("out_proj")?,
            heads: Heads::multi_head(config.num_attention_heads, config.head_dim()),
            tokens_per_view: config.num_patches(),
        })
    }

    fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        let (q, k, v) = (self.q_proj.forward(x), self.k_proj.forward(x), self.v_proj.forward(x));
        let mut out = Array2::zeros(x.raw_dim());
        let view = (Axis(0), self.tokens_per_view);
        let [q, k, v] = [&q, &k, &v].map(|x| x.axis_chunks_iter(view.0, view.1));
        let outs = out.axis_chunks_iter_mut(view.0, view.1);
        for (mut out, ((q, k), v)) in outs.zip(q.zip(k).zip(v)) {
            out.assign(&attention(&q, &k, &v, self.heads, Mask::None));
        }
        self.out_proj.forward(&out)
    }
}

/// `SiglipMLP`.
struct SiglipMlp {
    fc1: Linear,
    fc2: Linear,
}

impl SiglipMlp {
    fn new(config: &VisionConfig, weights: &Weights) -> Result<Self> {
        let (dim, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            fc1: Linear::new(dim, inner, &weights.pp("fc1"))?,
            fc2: Linear::new(inner, dim, &weights.pp("fc2"))?,
        })
    }

    fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        self.fc2.forward(&gelu_tanh(self.fc1.forward(x)))
    }
}
