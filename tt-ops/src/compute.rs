//! How precisely an op computes (`ttnn::ComputeKernelConfig`, `MathFidelity`).

use serde::Serialize;

/// How many passes the matrix engine makes over the mantissas of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum MathFidelity {
    /// One pass: 5 bits by 7.
    LoFi,
    /// Two passes: weights whole, activations without their last bit.
    HiFi2,
    /// Three passes.
    HiFi3,
    /// Four passes: bfloat16 products exact.
    HiFi4,
}

/// Precision of one op, under TTNN's field names.
///
/// On the card every field is passed on. The software device always computes as `HiFi4` with fp32 accumulation and
/// without approximations, whatever is asked for: the config is recorded in captured ops and never lowers its
/// accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ComputeKernelConfig {
    /// Passes of the matrix engine.
    pub math_fidelity: MathFidelity,
    /// Whether vector functions (exp, gelu, …) may be approximate.
    pub math_approx_mode: bool,
    /// Whether sums are kept in fp32 rather than bfloat16.
    pub fp32_dest_acc_en: bool,
    /// Whether partial sums of K blocks are added in L1 by the packer.
    pub packer_l1_acc: bool,
}

impl ComputeKernelConfig {
    /// Products exact, fp32 sums: what the software device always does.
    pub const HIFI4: Self = Self {
        math_fidelity: MathFidelity::HiFi4,
        math_approx_mode: false,
        fp32_dest_acc_en: true,
        packer_l1_acc: true,
    };
    /// Weights whole, fp32 sums: the card's usual choice for matmuls.
    pub const HIFI2: Self = Self {
        math_fidelity: MathFidelity::HiFi2,
        math_approx_mode: false,
        fp32_dest_acc_en: true,
        packer_l1_acc: true,
    };
}

impl Default for ComputeKernelConfig {
    fn default() -> Self {
        Self::HIFI4
    }
}
