//! How one state or action key is normalised; source: NVIDIA's `Normalizer` (GR00T N1.5,
//! `gr00t/data/transform/state_action.py`) and `StateActionSinCosTransform`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Normalisation of one key. The maths is in [`crate::state::normalize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NormalizationMode {
    /// Values pass through.
    #[default]
    None,
    /// `[min, max]` to `[-1, 1]`, not clamped; 0 where `min == max`.
    MinMax,
    /// `[q01, q99]` to `[-1, 1]`, clamped; where `q01 == q99` the value itself, clamped too.
    Q99,
    /// Zero mean, unit deviation; the value itself where the deviation is 0.
    MeanStd,
    /// 1 above 0.5, else 0.
    Binary,
    /// Divided by `max(|min|, |max|)`, 0 where that is 0; states only.
    Scale,
    /// Each value becomes its sine and its cosine, all sines first; states only, needs no statistics.
    SinCos,
}

impl NormalizationMode {
    /// The mode's name in data configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MinMax => "min_max",
            Self::Q99 => "q99",
            Self::MeanStd => "mean_std",
            Self::Binary => "binary",
            Self::Scale => "scale",
            Self::SinCos => "sin_cos",
        }
    }

    /// Whether a normalised value can be turned back, which actions need.
    pub(crate) fn is_invertible(self) -> bool {
        !matches!(self, Self::Scale | Self::SinCos)
    }

    /// Whether NVIDIA looks up the key's statistics for this mode.
    pub(crate) fn needs_statistics(self) -> bool {
        !matches!(self, Self::None | Self::SinCos)
    }
}

impl fmt::Display for NormalizationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
