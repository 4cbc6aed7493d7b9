//! Tensors on a device.

use std::marker::PhantomData;

use crate::device::{Device, Input};
use crate::dtype::{DataType, Dtype, Dynamic, HostScalar, HostSlice, Static};
use crate::error::{Result, TtError};
use crate::layout::Layout;
use crate::shape::Shape;
use crate::spec::TensorSpec;

/// A tensor on device `D` with data type `T` (`ttnn::Tensor`).
///
/// A handle: a clone is the same memory, which is given back when the last handle is dropped. Values do not change,
/// except by [`write`](Self::write) and by the replay of a trace that produced the tensor.
///
/// Data types are part of the type, so that mixing them up does not compile:
///
/// ```compile_fail
/// use tt_ops::{ops, Bfloat16, Float32, Soft, Tensor};
/// fn mix(a: &Tensor<Soft, Float32>, b: &Tensor<Soft, Bfloat16>) {
///     let _: tt_ops::Result<Tensor<Soft, Float32>> = ops::add(a, b);
/// }
/// ```
pub struct Tensor<D: Device, T: Dtype> {
    device: D,
    buffer: D::Buffer,
    spec: TensorSpec,
    dtype: PhantomData<T>,
}

impl<D: Device, T: Dtype> Clone for Tensor<D, T> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), buffer: self.buffer.clone(), spec: self.spec, dtype: PhantomData }
    }
}

impl<D: Device, T: Dtype> std::fmt::Debug for Tensor<D, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor<{}>({})", self.device.name(), self.spec)
    }
}

impl<D: Device, T: Dtype> Tensor<D, T> {
    pub(crate) fn from_parts(device: D, buffer: D::Buffer, spec: TensorSpec) -> Self {
        Self { device, buffer, spec, dtype: PhantomData }
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device's handle to the memory.
    pub fn buffer(&self) -> &D::Buffer {
        &self.buffer
    }

    /// Shape, dtype, layout, placement.
    pub fn spec(&self) -> &TensorSpec {
        &self.spec
    }

    /// Logical shape.
    pub fn shape(&self) -> Shape {
        self.spec.shape
    }

    /// Extent `dim`; 1 where the rank is lower.
    pub fn dim(&self, dim: usize) -> usize {
        self.spec.shape.dims().get(dim).copied().unwrap_or(1)
    }

    /// Data type at run time.
    pub fn dtype(&self) -> DataType {
        self.spec.dtype
    }

    /// Layout.
    pub fn layout(&self) -> Layout {
        self.spec.layout
    }

    /// The same tensor with its data type known at run time only.
    pub fn to_dynamic(&self) -> Tensor<D, Dynamic> {
        Tensor::from_parts(self.device.clone(), self.buffer.clone(), self.spec)
    }

    /// Gives the memory back now, although clones may live on; reading those is an error (`ttnn::deallocate`).
    pub fn deallocate(self) -> Result<()> {
        self.device.deallocate(&self.buffer)
    }

    /// The values, row-major; floats convert between `f32` and `bf16` (`Tensor::to_vector`).
    pub fn to_vector<S: HostScalar>(&self) -> Result<Vec<S>> {
        let mut out = vec![S::default(); self.spec.shape.volume()];
        self.read(&mut out)?;
        Ok(out)
    }

    /// [`to_vector`](Self::to_vector) into memory that is there already.
    pub fn read<S: HostScalar>(&self, out: &mut [S]) -> Result<()> {
        check_host("to_vector", &self.spec, out.len(), S::slice(&[]))?;
        self.device.read(&self.buffer, &self.spec, S::slice_mut(out))
    }

    pub(crate) fn input(&self) -> Input<'_, D> {
        Input::Tensor { buffer: &self.buffer, spec: &self.spec }
    }
}

impl<D: Device, T: Static> Tensor<D, T> {
    /// A tensor of `shape` from row-major host values; floats are rounded to `T` (`Tensor::from_span`). Float tensors
    /// are in tiles, integers row-major.
    ///
    /// ```
    /// use tt_ops::{Bfloat16, Soft, Tensor};
    /// # fn main() -> tt_ops::Result<()> {
    /// let device = Soft::builder().threads(1).open()?;
    /// let x = Tensor::<_, Bfloat16>::from_span(&device, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// assert_eq!(x.to_vector::<f32>()?[4], 5.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_span<S: HostScalar<Kind = T::Kind>>(
        device: &D,
        shape: impl Into<Shape>,
        values: &[S],
    ) -> Result<Self> {
        let spec = TensorSpec::new(shape, T::DATA_TYPE);
        Self::from_span_with(device, spec.layout, spec.shape, values)
    }

    /// [`from_span`](Self::from_span) in a given layout: embedding tables are row-major.
    pub fn from_span_with<S: HostScalar<Kind = T::Kind>>(
        device: &D,
        layout: Layout,
        shape: impl Into<Shape>,
        values: &[S],
    ) -> Result<Self> {
        let spec = TensorSpec::new(shape, T::DATA_TYPE).with_layout(layout);
        check_host("from_span", &spec, values.len(), S::slice(&[]))?;
        let buffer = device.upload(&spec, S::slice(values))?;
        Ok(Self::from_parts(device.clone(), buffer, spec))
    }

    /// A tensor of zeros (`ttnn::zeros`).
    pub fn zeros(device: &D, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        Self::from_span(device, shape, &vec![T::Host::default(); shape.volume()])
    }

    /// Overwrites the values in place: how inputs of a trace are refreshed (`ttnn::copy_host_to_device_tensor`).
    pub fn write<S: HostScalar<Kind = T::Kind>>(&self, values: &[S]) -> Result<()> {
        check_host("copy_host_to_device_tensor", &self.spec, values.len(), S::slice(&[]))?;
        self.device.write(&self.buffer, &self.spec, S::slice(values))
    }
}

impl<D: Device> Tensor<D, Dynamic> {
    /// The same tensor with its data type in the type, if it is `T`.
    pub fn typed<T: Static>(&self) -> Result<Tensor<D, T>> {
        if self.spec.dtype != T::DATA_TYPE {
            return Err(TtError::dtype("typed", self.spec.to_string(), T::DATA_TYPE.to_string()));
        }
        Ok(Tensor::from_parts(self.device.clone(), self.buffer.clone(), self.spec))
    }
}

/// A borrowed tensor whose data type is checked at run time: biases, norm weights, masks and tables, where an op
/// takes `float32` and `bfloat16` alike.
pub struct TensorRef<'a, D: Device> {
    device: &'a D,
    buffer: &'a D::Buffer,
    spec: &'a TensorSpec,
}

impl<'a, D: Device, T: Dtype> From<&'a Tensor<D, T>> for TensorRef<'a, D> {
    fn from(tensor: &'a Tensor<D, T>) -> Self {
        Self { device: &tensor.device, buffer: &tensor.buffer, spec: &tensor.spec }
    }
}

#[allow(clippy::expl_impl_clone_on_copy, reason = "a derive would ask that the device is Copy")]
impl<D: Device> Clone for TensorRef<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for TensorRef<'_, D> {}

impl<D: Device> std::fmt::Debug for TensorRef<'_, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TensorRef({})", self.spec)
    }
}

impl<'a, D: Device> TensorRef<'a, D> {
    pub(crate) fn input(&self) -> Input<'a, D> {
        Input::Tensor { buffer: self.buffer, spec: self.spec }
    }

    pub(crate) fn device(&self) -> &'a D {
        self.device
    }
}

/// Refuses host values of the wrong number or kind, and shapes without elements.
fn check_host(op: &'static str, spec: &TensorSpec, len: usize, kind: HostSlice<'_>) -> Result<()> {
    let fits = match kind {
        HostSlice::F32(_) | HostSlice::Bf16(_) => spec.dtype.is_float(),
        HostSlice::U32(_) => spec.dtype == DataType::Uint32,
        HostSlice::I32(_) => spec.dtype == DataType::Int32,
    };
    if !fits {
        return Err(TtError::dtype(op, "host values of another kind", spec.dtype.to_string()));
    }
    let volume = spec.shape.volume();
    if volume == 0 {
        return Err(TtError::shape(op, spec.shape.to_string(), "at least one element"));
    }
    if len != volume {
        return Err(TtError::shape(op, format!("{len} values"), format!("{volume} of them for {spec}")));
    }
    Ok(())
}
