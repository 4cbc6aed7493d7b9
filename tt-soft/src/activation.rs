//! Activation functions: what may be fused into a matmul. Errors are stated and tested in `kernels::math`.

/// An activation function. All are exactly 0 at 0, sigmoid aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// GELU in its tanh form (PyTorch's `approximate="tanh"`).
    GeluTanh,
    /// GELU in its erf form, the exact one.
    GeluErf,
    /// x * sigmoid(x).
    Silu,
    /// max(x, 0); NaN stays NaN.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e^-x).
    Sigmoid,
}
