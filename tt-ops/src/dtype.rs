//! Data types: [`DataType`] at run time, marker types at compile time, under TTNN's names.
//!
//! `ttnn::DataType` (TTNN page "Tensor", section "Data Type").

use half::bf16;
use serde::Serialize;

/// A tensor's data type at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum DataType {
    /// bfloat16.
    Bfloat16,
    /// IEEE single precision.
    Float32,
    /// 32-bit unsigned integers: token ids.
    Uint32,
    /// Blocks of 16 values that share an exponent, sign and 7 bits each.
    #[serde(rename = "BFLOAT8_B")]
    Bfloat8B,
    /// Blocks of 16 values that share an exponent, sign and 3 bits each.
    #[serde(rename = "BFLOAT4_B")]
    Bfloat4B,
    /// 32-bit signed integers.
    Int32,
}

impl DataType {
    /// Every data type.
    pub const ALL: [Self; 6] =
        [Self::Bfloat16, Self::Float32, Self::Uint32, Self::Bfloat8B, Self::Bfloat4B, Self::Int32];

    /// The data types of numbers with a fraction.
    pub const FLOATS: [Self; 4] = [Self::Float32, Self::Bfloat16, Self::Bfloat8B, Self::Bfloat4B];

    /// Whether values have a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Bfloat16 | Self::Float32 | Self::Bfloat8B | Self::Bfloat4B)
    }

    /// Whether an op may write its result in it ([`Activation`]).
    pub fn is_activation(self) -> bool {
        matches!(self, Self::Bfloat16 | Self::Float32)
    }

    /// Bytes that `elements` values take on the card (block formats with their exponents, without tile padding).
    pub fn bytes(self, elements: usize) -> usize {
        /// Values that share one exponent byte.
        const BLOCK: usize = 16;
        match self {
            Self::Bfloat16 => elements * 2,
            Self::Float32 | Self::Uint32 | Self::Int32 => elements * 4,
            Self::Bfloat8B => elements + elements.div_ceil(BLOCK),
            Self::Bfloat4B => elements.div_ceil(2) + elements.div_ceil(BLOCK),
        }
    }
}

impl std::fmt::Display for DataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bfloat16 => "bfloat16",
            Self::Float32 => "float32",
            Self::Uint32 => "uint32",
            Self::Bfloat8B => "bfloat8_b",
            Self::Bfloat4B => "bfloat4_b",
            Self::Int32 => "int32",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A marker for a tensor's data type: one of the static types or [`Dynamic`].
pub trait Dtype: sealed::Sealed + std::fmt::Debug + Send + Sync + 'static {}

/// A data type that is known when the code is written.
pub trait Static: Dtype {
    /// The same at run time.
    const DATA_TYPE: DataType;
    /// What host values it can be made from and read as.
    type Kind;
    /// The usual one of them: `f32` for all floats.
    type Host: HostScalar<Kind = Self::Kind>;
}

/// Numbers with a fraction.
pub trait Float: Static<Kind = FloatKind> {}

/// What an op may write its result in: `float32` or `bfloat16`. Block formats come from [`crate::ops::typecast`].
pub trait Activation: Float {}

/// Kind of the host values that a float tensor exchanges: `f32` and `bf16`.
#[derive(Debug)]
pub enum FloatKind {}
/// Kind of the host values that a `uint32` tensor exchanges.
#[derive(Debug)]
pub enum UintKind {}
/// Kind of the host values that an `int32` tensor exchanges.
#[derive(Debug)]
pub enum IntKind {}

macro_rules! marker {
    ($(#[$doc:meta])* $name:ident, $kind:ty, $host:ty $(, $extra:ident)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl Dtype for $name {}
        impl Static for $name {
            const DATA_TYPE: DataType = DataType::$name;
            type Kind = $kind;
            type Host = $host;
        }
        $(impl $extra for $name {})*
    };
}

marker!(
    /// IEEE single precision.
    Float32, FloatKind, f32, Float, Activation);
marker!(
    /// bfloat16.
    Bfloat16, FloatKind, f32, Float, Activation);
marker!(
    /// Block floating point, 8 bits.
    Bfloat8B, FloatKind, f32, Float);
marker!(
    /// Block floating point, 4 bits.
    Bfloat4B, FloatKind, f32, Float);
marker!(
    /// 32-bit unsigned integers.
    Uint32, UintKind, u32);
marker!(
    /// 32-bit signed integers.
    Int32, IntKind, i32);

/// A data type that is only known at run time.
#[derive(Debug, Clone, Copy)]
pub enum Dynamic {}
impl sealed::Sealed for Dynamic {}
impl Dtype for Dynamic {}

/// A plain value that host memory holds.
pub trait HostScalar: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// Which tensors exchange it.
    type Kind;
    /// A borrowed view for a device to read.
    fn slice(values: &[Self]) -> HostSlice<'_>;
    /// A borrowed view for a device to write.
    fn slice_mut(values: &mut [Self]) -> HostSliceMut<'_>;
}

macro_rules! host_scalar {
    ($ty:ty, $kind:ty, $variant:ident) => {
        impl sealed::Sealed for $ty {}
        impl HostScalar for $ty {
            type Kind = $kind;
            fn slice(values: &[Self]) -> HostSlice<'_> {
                HostSlice::$variant(values)
            }
            fn slice_mut(values: &mut [Self]) -> HostSliceMut<'_> {
                HostSliceMut::$variant(values)
            }
        }
    };
}
host_scalar!(f32, FloatKind, F32);
host_scalar!(bf16, FloatKind, Bf16);
host_scalar!(u32, UintKind, U32);
host_scalar!(i32, IntKind, I32);

/// Host values on their way to a device, row-major. Floats are rounded to the tensor's type (nearest even).
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum HostSlice<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    U32(&'a [u32]),
    I32(&'a [i32]),
}

/// Room for values that come from a device, row-major.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum HostSliceMut<'a> {
    F32(&'a mut [f32]),
    Bf16(&'a mut [bf16]),
    U32(&'a mut [u32]),
    I32(&'a mut [i32]),
}

impl HostSlice<'_> {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::Bf16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl HostSliceMut<'_> {
    /// How many values fit.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::Bf16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
        }
    }

    /// Whether there is no room.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [f32]> for HostSlice<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [bf16]> for HostSlice<'a> {
    fn from(values: &'a [bf16]) -> Self {
        Self::Bf16(values)
    }
}
