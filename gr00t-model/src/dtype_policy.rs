//! Dtype policies: which data type the big matmul weights of each part have on the device.

use std::fmt;
use std::str::FromStr;

use tt_ops::DataType;

use crate::error::ModelError;

/// Data types of the matmul weights, per part. Norms, biases and tables are fp32 in every policy; sums, softmax and
/// norm statistics are fp32; what passes from op to op is bf16, residual streams and the flow's state are fp32.
///
/// | policy | vision | llm | adapter | denoise |
/// |---|---|---|---|---|
/// | `bf16` | bf16 | bf16 | bf16 | bf16 |
/// | `mixed` | bf16 | bfp8_b | bfp8_b | bfp8_b |
/// | `mixed_dit` (default) | bf16 | bf16 | bf16 | bfp8_b |
///
/// ```
/// use gr00t_model::{DtypePolicy, Part};
/// use tt_ops::DataType;
///
/// let policy: DtypePolicy = "mixed".parse()?;
/// assert_eq!(policy.weights(Part::Vision), DataType::Bfloat16);
/// assert_eq!(policy.weights(Part::Llm), DataType::Bfloat8B);
/// # Ok::<_, gr00t_model::ModelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum DtypePolicy {
    /// bfloat16 everywhere.
    Bf16,
    /// Vision in bfloat16, everything after it in bfloat8_b.
    Mixed,
    /// The denoiser in bfloat8_b, everything before it in bfloat16.
    #[default]
    MixedDit,
}

/// A part of the model whose weights share a data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// SigLIP 2 and the connector `mlp1`.
    Vision,
    /// Qwen3.
    Llm,
    /// `vlln` and `vl_self_attention`.
    Adapter,
    /// State and action encoders, DiT, action decoder.
    Denoise,
}

impl Part {
    /// All parts, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Vision, Self::Llm, Self::Adapter, Self::Denoise];

    /// Short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Llm => "llm",
            Self::Adapter => "adapter",
            Self::Denoise => "denoise",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl DtypePolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Bf16, Self::Mixed, Self::MixedDit];

    /// The name that options and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Mixed => "mixed",
            Self::MixedDit => "mixed_dit",
        }
    }

    /// Data type of the matmul weights of `part`.
    pub const fn weights(self, part: Part) -> DataType {
        match (self, part) {
            (Self::Mixed, Part::Llm | Part::Adapter | Part::Denoise) | (Self::MixedDit, Part::Denoise) => {
                DataType::Bfloat8B
            }
            _ => DataType::Bfloat16,
        }
    }

    /// Least correlation with the fp32 reference that the software device must reach on every gated stage.
    pub const fn min_pcc(self) -> f64 {
        match self {
            Self::Bf16 => 0.9999,
            Self::Mixed | Self::MixedDit => 0.999,
        }
    }
}

impl fmt::Display for DtypePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DtypePolicy {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| ModelError::Name {
            what: "dtype policy",
            got: name.into(),
            wanted: "bf16, mixed or mixed_dit",
        })
    }
}
