//! What an op costs: floating-point operations, counted as textbooks do (a multiply-add is two).

use super::{InputSpec, Op};
use crate::spec::TensorSpec;

impl Op {
    /// Floating-point operations of one call; 0 for ops that only move values. Element-wise functions count one per
    /// element, norms and softmax the passes that they make over their rows.
    pub fn flops(&self, inputs: &[InputSpec], outputs: &[TensorSpec]) -> u64 {
        /// Sum, squared difference and sum, normalise, scale, shift.
        const NORM: u64 = 8;
        /// Maximum, subtract, exp, sum, divide.
        const SOFTMAX: u64 = 5;
        let out = outputs.first().map_or(0, |o| o.shape.volume() as u64);
        let tensor = |i: usize| match inputs.get(i) {
            Some(InputSpec::Tensor(spec)) => Some(*spec),
            _ => None,
        };
        match self {
            Self::Linear { bias, activation, residual, .. } => {
                let k = match inputs.get(1) {
                    Some(InputSpec::Weight(w)) => w.k as u64,
                    _ => 0,
                };
                out * (2 * k + u64::from(*bias) + u64::from(activation.is_some()) + u64::from(*residual))
            }
            Self::Matmul { transpose_a, .. } => {
                let k = tensor(0).map_or(0, |a| a.shape.as_rank4()[if *transpose_a { 2 } else { 3 }] as u64);
                out * 2 * k
            }
            Self::ScaledDotProductAttention { .. } => {
                let [b, h, sq, e] = tensor(0).map_or([0; 4], |q| q.shape.as_rank4().map(|d| d as u64));
                let sk = tensor(1).map_or(0, |k| k.shape.as_rank4()[2] as u64);
                b * h * sq * sk * (4 * e + SOFTMAX)
            }
            Self::LayerNorm { .. } | Self::RmsNorm { .. } => NORM * out,
            Self::Softmax { .. } => SOFTMAX * out,
            Self::RotaryEmbedding { .. } => 3 * out,
            Self::Swiglu { .. } => 2 * out,
            Self::Binary { lhs_activation, rhs_activation, activation, .. } => {
                let fused = [lhs_activation, rhs_activation, activation];
                out * (1 + fused.iter().filter(|a| a.is_some()).count() as u64)
            }
            Self::Unary { .. } => out,
            _ => 0,
        }
    }
}
