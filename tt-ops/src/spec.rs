//! What a tensor or a weight holds: shape, dtype, layout, placement (`ttnn::TensorSpec`).

use serde::Serialize;

use crate::dtype::DataType;
use crate::layout::{Layout, MemoryConfig};
use crate::shape::Shape;

/// What a tensor holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TensorSpec {
    /// Logical shape.
    pub shape: Shape,
    /// Data type.
    pub dtype: DataType,
    /// Layout.
    pub layout: Layout,
    /// Placement.
    pub memory_config: MemoryConfig,
}

impl TensorSpec {
    /// A spec in DRAM; floats in tiles, integers row-major.
    pub fn new(shape: impl Into<Shape>, dtype: DataType) -> Self {
        Self {
            shape: shape.into(),
            dtype,
            layout: if dtype.is_float() { Layout::Tile } else { Layout::RowMajor },
            memory_config: MemoryConfig::DRAM,
        }
    }

    /// The same in another layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The same with another shape.
    #[must_use]
    pub fn with_shape(mut self, shape: impl Into<Shape>) -> Self {
        self.shape = shape.into();
        self
    }

    /// The same in another data type.
    #[must_use]
    pub fn with_dtype(mut self, dtype: DataType) -> Self {
        self.dtype = dtype;
        self
    }

    /// The same placed elsewhere.
    #[must_use]
    pub fn with_memory_config(mut self, memory_config: MemoryConfig) -> Self {
        self.memory_config = memory_config;
        self
    }

    /// Bytes on the card without tile padding.
    pub fn bytes(&self) -> usize {
        self.dtype.bytes(self.shape.volume())
    }
}

impl std::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)
    }
}

/// In which order a weight's values come from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightOrder {
    /// `[out, in]` = `[n, k]`, as in `torch.nn.Linear`: TTNN's `transpose_b`.
    OutIn,
    /// `[in, out]` = `[k, n]`: what TTNN's `linear` takes as it is.
    InOut,
}

/// What a matmul weight holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct WeightSpec {
    /// Inputs: the extent that is summed over.
    pub k: usize,
    /// Outputs.
    pub n: usize,
    /// Data type: one of [`DataType::FLOATS`], chosen at run time by a dtype policy.
    pub dtype: DataType,
    /// Order of the host's values. Block formats share exponents along the last extent of `[k, n]`, whatever the
    /// order.
    pub order: WeightOrder,
}

impl std::fmt::Display for WeightSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}, {}]", self.dtype, self.k, self.n)
    }
}
