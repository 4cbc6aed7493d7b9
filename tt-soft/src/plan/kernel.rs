//! What a planned call computes, and how it reaches the kernels: one variant per kernel, with everything that is
//! known before it runs.

use std::sync::Arc;

use crate::activation::Activation;
use crate::block_float::BlockFormat;
use crate::eltwise::{Binary, Fused, Unary};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matmul::{Epilogue, Residual};
use crate::norm::Norm;
use crate::pack::PackedWeight;
use crate::plan::memory::Inputs;
use crate::view::{View, ViewMut};
use crate::{attention, eltwise, matmul, movement, norm};

/// A kernel with its constants. Operands come separately, in the order that each variant states.
#[derive(Debug, Clone)]
pub enum Kernel {
    /// x, then bias (dense float32) and residual where present.
    Linear {
        /// The weight.
        weight: Arc<PackedWeight>,
        /// Whether there is a bias.
        bias: bool,
        /// Applied after the bias.
        activation: Option<Activation>,
        /// Whether there is a residual.
        residual: bool,
    },
    /// a, b.
    Matmul {
        /// Read `b` as `[.., n, k]`.
        transpose_b: bool,
    },
    /// x, then weight and bias (dense float32) where present.
    LayerNorm {
        /// Added to the variance.
        epsilon: f32,
        /// Whether there is a weight.
        weight: bool,
        /// Whether there is a bias.
        bias: bool,
    },
    /// x, then weight (dense float32) where present.
    RmsNorm {
        /// Added to the mean square.
        epsilon: f32,
        /// Whether there is a weight.
        weight: bool,
    },
    /// q, k, v, then mask where present.
    Sdpa {
        /// Whether a query sees only keys up to its own position.
        causal: bool,
        /// Factor of the scores.
        scale: f32,
        /// Whether there is a mask.
        mask: bool,
    },
    /// x, along its last extent.
    Softmax,
    /// x, cos, sin.
    Rotary,
    /// x.
    Unary(Unary),
    /// a, b, of the output's shape (strides of 0 repeat).
    Binary(Binary, Fused),
    /// a, of the output's shape.
    BinaryScalar(Binary, Fused, f32),
    /// x, of the output's shape.
    Copy,
    /// ids, table.
    Embedding,
    /// x, of the output's shape: rounds to values of a block format along rows.
    Quantize(BlockFormat),
}

impl Kernel {
    /// The input that the output may take the memory of: it is read element by element, each before it is written.
    pub(super) fn in_place_input(&self) -> Option<usize> {
        match self {
            Self::Linear { bias, residual: true, .. } => Some(1 + usize::from(*bias)),
            _ => None,
        }
    }

    /// Runs on `inputs`; `in_place` names the input that `out` already holds.
    pub(super) fn run(
        &self,
        engine: &Engine,
        inputs: &Inputs<'_>,
        in_place: Option<usize>,
        mut out: ViewMut<'_>,
    ) -> Result<()> {
        let out = &mut out;
        let view = |index: usize| -> Result<View<'_>> { inputs.view(index) };
        match self {
            Self::Linear { weight, bias, activation, residual } => {
                let at = 1 + usize::from(*bias);
                let residual = match (residual, in_place) {
                    (false, _) => Residual::None,
                    (true, Some(index)) if index == at => Residual::InPlace,
                    (true, _) => Residual::From(view(at)?),
                };
                let bias = if *bias { Some(inputs.vector(1)?) } else { None };
                let epilogue = Epilogue { bias, activation: *activation, residual };
                matmul::linear(engine, &view(0)?, weight, &epilogue, out)
            }
            Self::Matmul { transpose_b } => matmul::matmul(engine, &view(0)?, &view(1)?, *transpose_b, out),
            Self::LayerNorm { epsilon, weight, bias } => {
                let weight_values = if *weight { Some(inputs.vector(1)?) } else { None };
                let bias = if *bias { Some(inputs.vector(1 + usize::from(*weight))?) } else { None };
                let norm = Norm { weight: weight_values, bias, eps: *epsilon };
                norm::layer_norm(engine, &view(0)?, &norm, out)
            }
            Self::RmsNorm { epsilon, weight } => {
                let weight = if *weight { Some(inputs.vector(1)?) } else { None };
                norm::rms_norm(engine, &view(0)?, &Norm { weight, bias: None, eps: *epsilon }, out)
            }
            Self::Sdpa { causal, scale, mask } => {
                let mask = if *mask { Some(view(3)?) } else { None };
                let config =
                    attention::SdpaConfig { scale: Some(*scale), causal: *causal, mask, kv_valid: None };
                attention::sdpa(engine, &view(0)?, &view(1)?, &view(2)?, &config, out)
            }
            Self::Softmax => eltwise::softmax(engine, &view(0)?, out),
            Self::Rotary => eltwise::rotary(engine, &view(0)?, &view(1)?, &view(2)?, out),
            Self::Unary(f) => eltwise::unary(engine, *f, &view(0)?, out),
            Self::Binary(f, fused) => {
                let b = eltwise::Operand::View(view(1)?);
                eltwise::binary_fused(engine, *f, *fused, &view(0)?, &b, out)
            }
            Self::BinaryScalar(f, fused, scalar) => {
                let b = eltwise::Operand::Scalar(*scalar);
                eltwise::binary_fused(engine, *f, *fused, &view(0)?, &b, out)
            }
            Self::Copy => movement::copy(engine, &view(0)?, out),
            Self::Embedding => movement::embedding(engine, &view(0)?, &view(1)?, out),
            Self::Quantize(format) => super::quantize::quantize(*format, &view(0)?, out),
        }
    }
}

/// An error of the plan itself.
pub(super) fn fault(op: &'static str, what: impl Into<String>) -> Error {
    Error::Plan { op, what: what.into() }
}
