//! The element-wise functions that ops apply, alone or fused (`ttnn::operations::unary::UnaryOpType`,
//! `BinaryOpType`).

use serde::Serialize;

/// A function fused into another op (`ttnn` argument `activation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Gaussian error linear unit by tanh: `torch`'s `approximate="tanh"`.
    GeluTanh,
    /// Gaussian error linear unit by erf.
    GeluErf,
    /// `x · sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
}

/// A function of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnaryOp {
    /// Gaussian error linear unit by tanh.
    GeluTanh,
    /// Gaussian error linear unit by erf.
    GeluErf,
    /// `x · sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic function.
    Sigmoid,
    /// Exponential.
    Exp,
    /// Negation.
    Neg,
}

/// A function of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a · b`.
    Multiply,
    /// `a / b`.
    Divide,
}

impl UnaryOp {
    /// TTNN's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GeluTanh | Self::GeluErf => "gelu",
            Self::Silu => "silu",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Exp => "exp",
            Self::Neg => "neg",
        }
    }
}

impl From<Activation> for UnaryOp {
    fn from(activation: Activation) -> Self {
        match activation {
            Activation::GeluTanh => Self::GeluTanh,
            Activation::GeluErf => Self::GeluErf,
            Activation::Silu => Self::Silu,
            Activation::Relu => Self::Relu,
        }
    }
}

impl BinaryOp {
    /// TTNN's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
        }
    }
}
