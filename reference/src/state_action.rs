//! Encoders and decoder of state and action, whose weights are chosen by the embodiment.
//!
//! Mirrors `CategorySpecificLinear`, `CategorySpecificMLP` and `MultiEmbodimentActionEncoder` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py> and
//! `SinusoidalPositionalEncoding` of `action_encoder.py` beside it.

use gr00t_host::Weights;
use gr00t_host::config::ActionHeadConfig;
use ndarray::{Array1, Array2, ArrayView1, Axis};

use crate::Result;
use crate::nn::{matmul, relu, silu};

/// Longest period of the time encoding.
const MAX_PERIOD: f32 = 10_000.0;

/// Which slot of how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Category {
    /// Slot; less than `count`.
    pub(crate) id: usize,
    /// Slots of the category-specific weights.
    pub(crate) count: usize,
}

/// `x @ W[e] + b[e]`: `W[e]` is `[in, out]`, not transposed as in `Linear`. Only slot e is read.
#[derive(Debug)]
struct CategorySpecificLinear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl CategorySpecificLinear {
    fn new(category: Category, inputs: usize, outputs: usize, weights: &Weights) -> Result<Self> {
        let Category { id, count } = category;
        let weight = weights.f32_rows("W", &[count, inputs, outputs], id..id + 1)?;
        Ok(Self {
            weight: Array2::from_shape_vec((inputs, outputs), weight)?,
            bias: Array1::from_vec(weights.f32_rows("b", &[count, outputs], id..id + 1)?),
        })
    }

    fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        matmul(x, &self.weight) + &self.bias
    }
}

/// Two category-specific layers with a ReLU between them: the state encoder and the action decoder.
#[derive(Debug)]
pub(crate) struct CategorySpecificMlp {
    layer1: CategorySpecificLinear,
    layer2: CategorySpecificLinear,
}

impl CategorySpecificMlp {
    /// `state_encoder`: `[1, max_state_dim]` to `[1, input_embedding_dim]`.
    pub(crate) fn state_encoder(
        config: &ActionHeadConfig,
        category: Category,
        weights: &Weights,
    ) -> Result<Self> {
        let dims = [config.max_state_dim, config.hidden_size, config.input_embedding_dim];
        Self::new(category, dims, &weights.pp("state_encoder"))
    }

    /// `action_decoder`: `[tokens, hidden_size]` to `[tokens, action_dim]`.
    pub(crate) fn action_decoder(
        config: &ActionHeadConfig,
        category: Category,
        weights: &Weights,
    ) -> Result<Self> {
        let dims = [config.hidden_size, config.hidden_size, config.action_dim];
        Self::new(category, dims, &weights.pp("action_decoder"))
    }

    fn new(category: Category, [inputs, hidden, outputs]: [usize; 3], weights: &Weights) -> Result<Self> {
        Ok(Self {
            layer1: CategorySpecificLinear::new(category, inputs, hidden, &weights.pp("layer1"))?,
            layer2: CategorySpecificLinear::new(category, hidden, outputs, &weights.pp("layer2"))?,
        })
    }

    pub(crate) fn forward(&self, x: &Array2<f32>) -> Array2<f32> {
        self.layer2.forward(&relu(self.layer1.forward(x)))
    }
}

/// Noisy actions and their flow time to tokens.
#[derive(Debug)]
pub(crate) struct MultiEmbodimentActionEncoder {
    w1: CategorySpecificLinear,
    w2: CategorySpecificLinear,
    w3: CategorySpecificLinear,
    dim: usize,
}

impl MultiEmbodimentActionEncoder {
    pub(crate) fn new(config: &ActionHeadConfig, category: Category, weights: &Weights) -> Result<Self> {
        let (dim, weights) = (config.input_embedding_dim, weights.pp("action_encoder"));
        Ok(Self {
            w1: CategorySpecificLinear::new(category, config.action_dim, dim, &weights.pp("W1"))?,
            w2: CategorySpecificLinear::new(category, 2 * dim, dim, &weights.pp("W2"))?,
            w3: CategorySpecificLinear::new(category, dim, dim, &weights.pp("W3"))?,
            dim,
        })
    }

    /// `actions [horizon, action_dim]` at time bucket `timestep` to `[horizon, input_embedding_dim]`.
    pub(crate) fn forward(&self, actions: &Array2<f32>, timestep: usize) -> Array2<f32> {
        let mut x = Array2::zeros((actions.nrows(), 2 * self.dim));
        let (mut a, mut tau) = x.view_mut().split_at(Axis(1), self.dim);
        a.assign(&self.w1.forward(actions));
        tau.assign(&sinusoidal_positional_encoding(timestep, self.dim));
        self.w3.forward(&silu(self.w2.forward(&x)))
    }
}

/// `[sin, cos]` of the time bucket at `dim / 2` frequencies from 1 down to almost `1 / MAX_PERIOD`; f32 as upstream.
fn sinusoidal_positional_encoding(timestep: usize, dim: usize) -> Array1<f32> {
    let half = dim / 2;
    let step = MAX_PERIOD.ln() / half as f32;
    Array1::from_shape_fn(2 * half, |i| {
        let frequency = (-((i % half) as f32) * step).exp();
        let angle = timestep as f32 * frequency;
        if i < half { angle.sin() } else { angle.cos() }
    })
}

/// One row of a matrix from a slice.
pub(crate) fn row(values: &[f32]) -> Array2<f32> {
    ArrayView1::from(values).insert_axis(Axis(0)).to_owned()
}
