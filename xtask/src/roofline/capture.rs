//! The op list of a model that is never loaded: weights of the right shape and no values, on a device without values.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use gr00t_host::checkpoint::{StoredDtype, TensorInfo, TensorSource, expected_tensors};
use gr00t_host::{ModelConfig, ModelInputs, Weights};
use gr00t_model::{DtypePolicy, Gr00t, RunOptions, Stage};
use half::bf16;
use tt_ops::{CapturedOp, CapturedOps};

use super::shapes::Shapes;

/// What is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) views: usize,
    /// Tokens of the prompt, images included.
    pub(super) tokens: usize,
    /// What they are padded to a multiple of.
    pub(super) bucket: usize,
    pub(super) steps: usize,
    pub(super) policy: DtypePolicy,
}

impl Geometry {
    /// Tokens with padding.
    pub(super) fn sequence(&self) -> usize {
        self.tokens.next_multiple_of(self.bucket.max(1))
    }
}

/// The ops of one model.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) geometry: Geometry,
    pub(super) stages: Vec<(Stage, CapturedOps)>,
    /// What is computed once, of the time buckets alone.
    pub(super) at_load: Vec<CapturedOp>,
}

/// Captures `geometry` of a model of geometry `config`.
///
/// # Errors
/// Options that the model refuses.
pub(super) fn capture(config: &ModelConfig, geometry: Geometry) -> Result<Plan> {
    let Geometry { views, tokens, bucket, steps, policy } = geometry;
    let image_tokens = views.saturating_mul(config.eagle.tokens_per_view());
    if tokens < image_tokens {
        return Err(anyhow!("{tokens} tokens, wanted at least the {image_tokens} of {views} views"));
    }
    let device = Shapes::default();
    let weights = Weights::new(Arc::new(NoValues::new(config)));
    let slot = 0;
    let model = Gr00t::builder(config.clone(), weights, device.clone())
        .dtype_policy(policy)
        .sequence_bucket(bucket)
        .denoising_steps(steps)
        .embodiments([slot])
        .build()?;
    let (vision, head) = (&config.eagle.vision_config, &config.gr00t.action_head_cfg);
    // text in front of the images and behind them, as the prompt has it
    let mut input_ids = vec![config.eagle.image_token_index; tokens];
    let text = tokens - image_tokens;
    for at in (0..text / 2).chain(tokens - text.div_ceil(2)..tokens) {
        if let Some(id) = input_ids.get_mut(at) {
            *id = 0;
        }
    }
    let inputs = ModelInputs {
        pixel_values: vec![0.0; views * vision.num_channels * vision.image_size * vision.image_size],
        views,
        input_ids,
        state: vec![0.0; head.max_state_dim],
        noise: vec![0.0; head.action_horizon * head.action_dim],
        embodiment_id: slot,
    };
    let stages = model.captured_ops(&inputs, &RunOptions::new())?;
    Ok(Plan { geometry, stages, at_load: device.at_load() })
}

/// Tensors of the right names and shapes, all zeros: memory that nobody touches costs nothing.
#[derive(Debug)]
struct NoValues(HashMap<String, Vec<usize>>);

impl NoValues {
    fn new(config: &ModelConfig) -> Self {
        Self(expected_tensors(config).into_iter().map(|t| (t.name, t.shape)).collect())
    }
}

impl TensorSource for NoValues {
    fn describe(&self) -> String {
        "shapes without values".into()
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.0.get(name).map(|shape| TensorInfo { shape: shape.clone(), dtype: StoredDtype::Bf16 })
    }

    fn read_f32(&self, _: &str, _: usize, _: &mut [f32]) -> gr00t_host::Result<()> {
        Ok(())
    }

    fn read_bf16(&self, _: &str, _: usize, _: &mut [bf16]) -> gr00t_host::Result<()> {
        Ok(())
    }
}
