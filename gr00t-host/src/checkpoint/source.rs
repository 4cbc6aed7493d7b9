//! The trait behind every source of weights.

use half::bf16;

use crate::{Error, Result};

/// The element type that a source stores a tensor in. Weights are one of the first three; the others occur in
/// files of inputs and results, and as buffers beside weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredDtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE double precision.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Byte.
    U8,
    /// Truth value, one byte.
    Bool,
}

impl StoredDtype {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether weights may be stored like this.
    pub const fn is_weight(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// The name that safetensors files use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::F64 => "F64",
            Self::I64 => "I64",
            Self::I32 => "I32",
            Self::U8 => "U8",
            Self::Bool => "BOOL",
        }
    }
}

impl std::fmt::Display for StoredDtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

/// Refuses elements `start..start + len` outside a tensor of `shape`.
pub(super) fn checked_range(name: &str, shape: &[usize], start: usize, len: usize) -> Result<()> {
    let elements: usize = shape.iter().product();
    match start.checked_add(len) {
        Some(end) if end <= elements => Ok(()),
        _ => Err(Error::tensor(
            name,
            format!("{len} elements from {start}, but shape {shape:?} has {elements}"),
        )),
    }
}
