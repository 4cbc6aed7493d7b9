//! Reads a golden safetensors file: named tensors of f32, i64 or u8, whole in memory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use gr00t_host::checkpoint::{SafetensorsFile, StoredDtype, TensorSource};

/// Largest golden tensor that is read; the full-size file has 22 MB in all.
const MAX_ELEMENTS: usize = 1 << 30;

/// The values of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    /// Single precision.
    F32(Vec<f32>),
    /// Token ids, rows, masks.
    I64(Vec<i64>),
    /// Pixels.
    U8(Vec<u8>),
}

/// One tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    /// Logical shape, row-major.
    pub(crate) shape: Vec<usize>,
    /// Values.
    pub(crate) data: Data,
}

/// All tensors of a file by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Golden {
    tensors: BTreeMap<String, Tensor>,
}

impl Golden {
    /// Reads `path`.
    ///
    /// # Errors
    /// If it cannot be read, is not safetensors, or holds another element type.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = SafetensorsFile::open(path)?;
        let mut tensors = BTreeMap::new();
        for name in file.names() {
            let info = file.info(&name).ok_or_else(|| anyhow!("golden {name} is missing"))?;
            if info.elements() > MAX_ELEMENTS {
                bail!("golden {name} has {} elements, at most {MAX_ELEMENTS} expected", info.elements());
            }
            let data = match info.dtype {
                StoredDtype::F32 => {
                    let mut values = vec![0.0; info.elements()];
                    file.read_f32(&name, 0, &mut values)?;
                    Data::F32(values)
                }
                StoredDtype::I64 => Data::I64(file.read_i64(&name)?),
                StoredDtype::U8 => Data::U8(file.read_u8(&name)?),
                other => bail!("golden {name} is {other}, wanted F32, I64 or U8"),
            };
            tensors.insert(name, Tensor { shape: info.shape, data });
        }
        Ok(Self { tensors })
    }

    /// All names, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The tensor `name`, if there is one.
    pub(crate) fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// Shape and values of the f32 tensor `name`.
    ///
    /// # Errors
    /// If it is missing, of another type, or holds a value that is not finite.
    pub(crate) fn f32(&self, name: &str) -> Result<(&[usize], &[f32])> {
        let tensor = self.wanted(name)?;
        let Data::F32(values) = &tensor.data else { bail!("golden {name} is not F32") };
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            bail!("golden {name} holds {} at element {at}", values[at]);
        }
        Ok((&tensor.shape, values))
    }

    /// Shape and values of the i64 tensor `name`.
    ///
    /// # Errors
    /// If it is missing or of another type.
    pub(crate) fn i64(&self, name: &str) -> Result<(&[usize], &[i64])> {
        let tensor = self.wanted(name)?;
        let Data::I64(values) = &tensor.data else { bail!("golden {name} is not I64") };
        Ok((&tensor.shape, values))
    }

    /// Shape and values of the u8 tensor `name`.
    ///
    /// # Errors
    /// If it is missing or of another type.
    pub(crate) fn u8(&self, name: &str) -> Result<(&[usize], &[u8])> {
        let tensor = self.wanted(name)?;
        let Data::U8(values) = &tensor.data else { bail!("golden {name} is not U8") };
        Ok((&tensor.shape, values))
    }

    fn wanted(&self, name: &str) -> Result<&Tensor> {
        self.get(name).ok_or_else(|| anyhow!("golden {name} is missing"))
    }

    #[cfg(test)]
    pub(crate) fn from_tensors(tensors: impl IntoIterator<Item = (&'static str, Tensor)>) -> Self {
        Self { tensors: tensors.into_iter().map(|(name, tensor)| (name.to_string(), tensor)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_finite_is_named() {
        let tensor = Tensor { shape: vec![2], data: Data::F32(vec![0.0, f32::NAN]) };
        let golden = Golden::from_tensors([("out.x", tensor)]);
        let error = golden.f32("out.x").unwrap_err().to_string();
        assert_eq!(error, "golden out.x holds NaN at element 1");
    }

    #[test]
    fn a_missing_tensor_and_a_wrong_type_are_named() {
        let golden = Golden::from_tensors([("a", Tensor { shape: vec![1], data: Data::I64(vec![7]) })]);
        assert_eq!(golden.f32("b").unwrap_err().to_string(), "golden b is missing");
        assert_eq!(golden.f32("a").unwrap_err().to_string(), "golden a is not F32");
    }

    #[test]
    fn a_file_cut_short_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("golden.safetensors");
        std::fs::write(&path, [200, 0, 0, 0, 0, 0, 0, 0, b'{']).unwrap();
        assert!(format!("{:#}", Golden::read(&path).unwrap_err()).contains("golden.safetensors"));
    }
}
