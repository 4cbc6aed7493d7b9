//! `ttnn.add`, `ttnn.multiply`, … and functions of one operand.

use super::{run_one, same_device};
use crate::device::Device;
use crate::dtype::{Activation as ActivationType, Float};
use crate::error::Result;
use crate::op::{Activation, BinaryOp, Op, UnaryOp};
use crate::tensor::Tensor;

/// Second operand of an element-wise op: a tensor of the same data type, or a number.
#[derive(Debug)]
pub enum Rhs<'a, D: Device, T: Float> {
    /// A tensor whose extents broadcast with the first operand's.
    Tensor(&'a Tensor<D, T>),
    /// A number.
    Scalar(f32),
}

impl<'a, D: Device, T: Float> From<&'a Tensor<D, T>> for Rhs<'a, D, T> {
    fn from(tensor: &'a Tensor<D, T>) -> Self {
        Self::Tensor(tensor)
    }
}

impl<D: Device, T: Float> From<f32> for Rhs<'_, D, T> {
    fn from(scalar: f32) -> Self {
        Self::Scalar(scalar)
    }
}

/// Functions fused around an element-wise op (TTNN: `input_tensor_a_activations`, `input_tensor_b_activations`,
/// `activations`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Binary {
    /// Applied to the first operand.
    pub lhs_activation: Option<Activation>,
    /// Applied to the second operand.
    pub rhs_activation: Option<Activation>,
    /// Applied to the result.
    pub activation: Option<Activation>,
}

/// `activation(lhs_activation(a) ∘ rhs_activation(b))`. Computed in fp32, rounded once to `O`.
///
/// # Errors
/// Extents that do not broadcast.
pub fn binary<'a, D: Device, T: Float, O: ActivationType>(
    op: BinaryOp,
    a: &'a Tensor<D, T>,
    b: impl Into<Rhs<'a, D, T>>,
    args: Binary,
) -> Result<Tensor<D, O>> {
    let b = b.into();
    let scalar = if let Rhs::Scalar(value) = b { Some(value) } else { None };
    let Binary { lhs_activation, rhs_activation, activation } = args;
    let op = Op::Binary { op, scalar, lhs_activation, rhs_activation, activation, dtype: O::DATA_TYPE };
    let mut inputs = vec![a.input()];
    if let Rhs::Tensor(tensor) = b {
        same_device(op.name(), a.device(), &[tensor.device()])?;
        inputs.push(tensor.input());
    }
    run_one(a.device(), &op, &inputs)
}

macro_rules! binary_ops {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Extents broadcast; `b` is a tensor or an `f32`. Computed in fp32, rounded once to `O`.
        ///
        /// # Errors
        /// Extents that do not broadcast.
        pub fn $name<'a, D: Device, T: Float, O: ActivationType>(
            a: &'a Tensor<D, T>,
            b: impl Into<Rhs<'a, D, T>>,
        ) -> Result<Tensor<D, O>> {
            binary(BinaryOp::$op, a, b, Binary::default())
        }
    )*};
}
binary_ops! {
    /// `a + b` (`ttnn.add`).
    add => Add,
    /// `a - b` (`ttnn.subtract`).
    subtract => Subtract,
    /// `a · b` (`ttnn.multiply`).
    multiply => Multiply,
    /// `a / b` (`ttnn.divide`).
    divide => Divide,
}

/// `a · b` with fused functions: `silu(gate) · up` is `lhs_activation: Some(Activation::Silu)` (`ttnn.multiply` with
/// `input_tensor_a_activations`).
///
/// # Errors
/// Extents that do not broadcast.
pub fn multiply_with<'a, D: Device, T: Float, O: ActivationType>(
    a: &'a Tensor<D, T>,
    b: impl Into<Rhs<'a, D, T>>,
    args: Binary,
) -> Result<Tensor<D, O>> {
    binary(BinaryOp::Multiply, a, b, args)
}

/// A function of each element. Computed in fp32, rounded once to `O`.
///
/// # Errors
/// None beside the device's own.
pub fn unary<D: Device, T: Float, O: ActivationType>(op: UnaryOp, x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
    run_one(x.device(), &Op::Unary { op, dtype: O::DATA_TYPE }, &[x.input()])
}

/// Which Gaussian error linear unit (`ttnn.gelu`: `fast_and_approximate_mode` and `GeluVariant`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gelu {
    /// `x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³)))`: `gelu_pytorch_tanh`, `gelu-approximate`.
    Tanh,
    /// `x/2 · (1 + erf(x / sqrt(2)))`.
    Erf,
}

/// Gaussian error linear unit, computed accurately in either variant (`ttnn.gelu`). Exactly 0 at 0.
///
/// # Errors
/// None beside the device's own.
pub fn gelu<D: Device, T: Float, O: ActivationType>(x: &Tensor<D, T>, variant: Gelu) -> Result<Tensor<D, O>> {
    unary(if variant == Gelu::Tanh { UnaryOp::GeluTanh } else { UnaryOp::GeluErf }, x)
}

macro_rules! unary_ops {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// None beside the device's own.
        pub fn $name<D: Device, T: Float, O: ActivationType>(x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
            unary(UnaryOp::$op, x)
        }
    )*};
}
unary_ops! {
    /// `x · sigmoid(x)` (`ttnn.silu`).
    silu => Silu,
    /// `max(x, 0)` (`ttnn.relu`).
    relu => Relu,
    /// Hyperbolic tangent (`ttnn.tanh`).
    tanh => Tanh,
    /// Logistic function (`ttnn.sigmoid`).
    sigmoid => Sigmoid,
    /// Exponential (`ttnn.exp`).
    exp => Exp,
    /// `-x` (`ttnn.neg`).
    neg => Neg,
}

/// `x[.., ..n] · silu(x[.., n..])`: `[.., 2n]` → `[.., n]` (`ttnn.swiglu`). A fused gate·up projection puts `up`
/// first.
///
/// # Errors
/// An odd last extent.
pub fn swiglu<D: Device, T: Float, O: ActivationType>(x: &Tensor<D, T>) -> Result<Tensor<D, O>> {
    run_one(x.device(), &Op::Swiglu { dtype: O::DATA_TYPE }, &[x.input()])
}
