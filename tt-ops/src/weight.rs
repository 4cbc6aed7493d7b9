//! Matmul weights, packed once by the device and kept in the data type that a dtype policy chose.

use crate::device::{Device, Input, ReadAt};
use crate::dtype::{DataType, HostSlice};
use crate::error::{Result, TtError};
use crate::spec::{WeightOrder, WeightSpec};

/// A `[k, n]` matmul weight on device `D`; its data type is known at run time. A handle, like
/// [`Tensor`](crate::Tensor).
pub struct Weight<D: Device> {
    device: D,
    packed: D::Packed,
    spec: WeightSpec,
}

impl<D: Device> Clone for Weight<D> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), packed: self.packed.clone(), spec: self.spec }
    }
}

impl<D: Device> std::fmt::Debug for Weight<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weight<{}>({})", self.device.name(), self.spec)
    }
}

impl<D: Device> Weight<D> {
    /// A weight in `torch.nn.Linear`'s order, `[out, in]` (TTNN: `transpose_b`).
    ///
    /// ```
    /// use tt_ops::{ops, Bfloat16, DataType, Soft, Tensor, Weight};
    /// # fn main() -> tt_ops::Result<()> {
    /// let device = Soft::builder().threads(1).open()?;
    /// let w = Weight::from_out_in(&device, 2, 3, DataType::Bfloat16, &[1.0f32, 0.0, 0.0, 0.0, 1.0, 1.0][..])?;
    /// let x = Tensor::<_, Bfloat16>::from_span(&device, [1, 3], &[1.0f32, 2.0, 3.0])?;
    /// let y: Tensor<_, Bfloat16> = ops::linear(&x, &w, ops::Linear::new())?;
    /// assert_eq!(y.to_vector::<f32>()?, [1.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_out_in<'a>(
        device: &D,
        out: usize,
        inputs: usize,
        dtype: DataType,
        values: impl Into<HostSlice<'a>>,
    ) -> Result<Self> {
        Self::pack(
            device,
            WeightSpec { k: inputs, n: out, dtype, order: WeightOrder::OutIn },
            &[values.into()],
        )
    }

    /// A weight in the order `[in, out]`, as TTNN's `linear` takes it.
    pub fn from_in_out<'a>(
        device: &D,
        inputs: usize,
        out: usize,
        dtype: DataType,
        values: impl Into<HostSlice<'a>>,
    ) -> Result<Self> {
        Self::pack(
            device,
            WeightSpec { k: inputs, n: out, dtype, order: WeightOrder::InOut },
            &[values.into()],
        )
    }

    /// Several weights in `torch.nn.Linear`'s order side by side along `out`: a fused projection of Q, K and V, or of
    /// gate and up.
    ///
    /// # Errors
    /// As [`from_out_in`](Self::from_out_in); no parts.
    pub fn fused_out_in(device: &D, inputs: usize, dtype: DataType, parts: &[HostSlice<'_>]) -> Result<Self> {
        let out = parts.iter().map(HostSlice::len).sum::<usize>() / inputs.max(1);
        Self::pack(device, WeightSpec { k: inputs, n: out, dtype, order: WeightOrder::OutIn }, parts)
    }

    /// A weight as `spec` says, from parts that lie side by side along `n`.
    ///
    /// # Errors
    /// Another number of values, values that are not floats, a data type that is not one of floats.
    pub fn pack(device: &D, spec: WeightSpec, parts: &[HostSlice<'_>]) -> Result<Self> {
        const OP: &str = "from_span";
        if !spec.dtype.is_float() {
            return Err(TtError::dtype(OP, spec.dtype.to_string(), "a float type"));
        }
        let volume = spec.k.checked_mul(spec.n).filter(|&n| n > 0);
        for part in parts {
            if !matches!(part, HostSlice::F32(_) | HostSlice::Bf16(_)) {
                return Err(TtError::dtype(OP, "integers", "floats"));
            }
            if part.is_empty() || !part.len().is_multiple_of(spec.k.max(1)) {
                let wanted = format!("a multiple of k {}", spec.k);
                return Err(TtError::shape(OP, format!("{} values", part.len()), wanted));
            }
        }
        let values: usize = parts.iter().map(HostSlice::len).sum();
        if volume != Some(values) {
            return Err(TtError::shape(OP, format!("{values} values"), format!("those of {spec}")));
        }
        let packed = device.pack(&spec, parts)?;
        Ok(Self { device: device.clone(), packed, spec })
    }

    /// The packed values as bytes for a cache on disk; [`Device::packed_format`] belongs into its key.
    ///
    /// # Errors
    /// What the device reports.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.device.packed_to_bytes(&self.packed)
    }

    /// A weight from [`to_bytes`](Self::to_bytes) of a weight with the same spec. Sizes are checked, contents are
    /// not: a cache keeps a checksum.
    ///
    /// # Errors
    /// Bytes of another format, version or size.
    pub fn from_bytes(device: &D, spec: WeightSpec, bytes: &[u8]) -> Result<Self> {
        let packed = device.packed_from_bytes(&spec, bytes)?;
        Ok(Self { device: device.clone(), packed, spec })
    }

    /// [`from_bytes`](Self::from_bytes) of `length` bytes that `read` gives, without a copy of them where the device can do so.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and the first of `read`.
    pub fn read(device: &D, spec: WeightSpec, length: usize, read: &ReadAt<'_>) -> Result<Self> {
        let packed = device.packed_read(&spec, length, read)?;
        Ok(Self { device: device.clone(), packed, spec })
    }

    /// Extents, data type, order.
    pub fn spec(&self) -> &WeightSpec {
        &self.spec
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device's handle to the packed values.
    pub fn packed(&self) -> &D::Packed {
        &self.packed
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.device.packed_bytes(&self.packed)
    }

    pub(crate) fn input(&self) -> Input<'_, D> {
        Input::Weight { packed: &self.packed, spec: &self.spec }
    }
}
