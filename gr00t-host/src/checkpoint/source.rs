//! The trait behind every source of weights.

use half::bf16;

use crate::Result;

/// The element type that a source stores a tensor in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredDtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
}

impl StoredDtype {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Shape and stored type of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Logical shape, row-major.
    pub shape: Vec<usize>,
    /// Element type as stored.
    pub dtype: StoredDtype,
}

impl TensorInfo {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes as stored.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }
}

/// A set of named tensors that can be read in part, without loading the whole.
///
/// Names are the checkpoint's full dotted names. Ranges are in elements, row-major.
pub trait TensorSource: Send + Sync + std::fmt::Debug {
    /// One line for logs: where the weights come from.
    fn describe(&self) -> String;

    /// All names, in the source's order.
    fn names(&self) -> Vec<String>;

    /// Shape and stored type, `None` if the source has no such tensor.
    fn info(&self, name: &str) -> Option<TensorInfo>;

    /// Fills `out` with elements `start..start + out.len()`, widened exactly to f32.
    fn read_f32(&self, name: &str, start: usize, out: &mut [f32]) -> Result<()>;

    /// Fills `out` with elements `start..start + out.len()` as bf16; f32 and f16 round to nearest, ties to even.
    fn read_bf16(&self, name: &str, start: usize, out: &mut [bf16]) -> Result<()>;
}
