//! Tensors on a card.

use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::error::Result;
use crate::spec::TensorSpec;

/// A tensor on a card (`ttnn::Tensor` with device storage). Its memory is given back when the handle is dropped, unless
/// another tensor is a view of it.
pub struct Tensor {
    handle: UniquePtr<ffi::Tensor>,
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.spec() {
            Ok(spec) => write!(f, "Tensor({:?} {:?})", spec.dtype, spec.shape),
            Err(_) => f.write_str("Tensor(deallocated)"),
        }
    }
}

impl Tensor {
    pub(crate) fn new(handle: UniquePtr<ffi::Tensor>) -> Self {
        Self { handle }
    }

    pub(crate) fn ffi(&self) -> &ffi::Tensor {
        &self.handle
    }

    /// Shape, data type, layout, placement, as TTNN knows them.
    ///
    /// # Errors
    /// Here and below: a tensor that was deallocated, or whose device was closed.
    pub fn spec(&self) -> Result<TensorSpec> {
        TensorSpec::from_ffi(ffi::tensor_spec(self.ffi())?)
    }

    /// Address in each bank.
    pub fn address(&self) -> Result<u64> {
        Ok(ffi::tensor_address(self.ffi())?)
    }

    /// Whether it has memory.
    pub fn is_allocated(&self) -> bool {
        ffi::tensor_is_allocated(self.ffi()).unwrap_or(false)
    }

    /// Gives the memory back now (`ttnn::deallocate`). Does nothing the second time.
    pub fn deallocate(&self) -> Result<()> {
        Ok(ffi::deallocate(self.ffi())?)
    }

    /// Overwrites the values in place with row-major floats, rounded to the tensor's data type.
    ///
    /// # Errors
    /// Another number of values; an integer tensor.
    pub fn write_floats(&self, values: &[f32]) -> Result<()> {
        Ok(ffi::write_floats(self.ffi(), values)?)
    }

    /// [`write_floats`](Self::write_floats) for `uint32`.
    pub fn write_u32(&self, values: &[u32]) -> Result<()> {
        Ok(ffi::write_u32(self.ffi(), values)?)
    }

    /// [`write_floats`](Self::write_floats) for `int32`.
    pub fn write_i32(&self, values: &[i32]) -> Result<()> {
        Ok(ffi::write_i32(self.ffi(), values)?)
    }

    /// Waits for the device and reads the values, row-major.
    ///
    /// # Errors
    /// Room for another number of values; an integer tensor.
    pub fn read_floats(&self, out: &mut [f32]) -> Result<()> {
        Ok(ffi::read_floats(self.ffi(), out)?)
    }

    /// [`read_floats`](Self::read_floats) for `uint32`.
    pub fn read_u32(&self, out: &mut [u32]) -> Result<()> {
        Ok(ffi::read_u32(self.ffi(), out)?)
    }

    /// [`read_floats`](Self::read_floats) for `int32`.
    pub fn read_i32(&self, out: &mut [i32]) -> Result<()> {
        Ok(ffi::read_i32(self.ffi(), out)?)
    }

    /// [`read_floats`](Self::read_floats) into new memory.
    pub fn to_floats(&self) -> Result<Vec<f32>> {
        let mut out = vec![0.0; self.spec()?.volume()];
        self.read_floats(&mut out)?;
        Ok(out)
    }

    /// Writes the tensor to a `.tensorbin` file, packed as it is on the card.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn dump(&self, path: &str) -> Result<()> {
        Ok(ffi::dump_tensor(self.ffi(), path)?)
    }
}
