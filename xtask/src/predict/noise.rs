//! The initial noise that a person asks for: a seed, or a JSON file of nested arrays.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gr00t_host::noise::Noise;
use gr00t_host::read_capped;
use serde_json::Value;

/// Largest noise file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Noise whose shape is not yet known to fit the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoiseChoice {
    /// What `torch.randn` draws for the seed.
    Seed(u64),
    /// Values of a file.
    File {
        /// The file.
        path: PathBuf,
        /// Lengths of the nested arrays, outermost first.
        shape: Vec<usize>,
        /// All numbers in order.
        values: Vec<f32>,
    },
}

impl NoiseChoice {
    /// Reads a file of nested arrays of numbers, all of one length at each depth.
    ///
    /// # Errors
    /// If it is not that.
    pub(crate) fn from_file(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        let json = serde_json::from_slice(&read_capped(path, MAX_BYTES)?).with_context(shown)?;
        let mut values = Vec::new();
        let shape = flatten(&json, &mut values).with_context(shown)?;
        Ok(Self::File { path: path.to_path_buf(), shape, values })
    }

    /// The noise for a model of `horizon` time steps of `dim` numbers. Rows may be nested in batches of one, or
    /// follow each other in one flat array.
    ///
    /// # Errors
    /// If a file holds another shape: noise that is transposed has the right number of elements and is wrong.
    pub(crate) fn for_model(&self, horizon: usize, dim: usize) -> Result<Noise> {
        match self {
            Self::Seed(seed) => Ok(Noise::Seed(*seed)),
            Self::File { path, shape, values } => {
                let rows: Vec<usize> = match shape.as_slice() {
                    [1, batch @ .., _, _] if batch.iter().all(|&n| n == 1) => {
                        shape[shape.len() - 2..].to_vec()
                    }
                    _ => shape.clone(),
                };
                if rows != [horizon, dim] && rows != [horizon * dim] {
                    bail!("{}: noise of shape {shape:?}, wanted [{horizon}, {dim}]", path.display());
                }
                Ok(Noise::Explicit(values.clone()))
            }
        }
    }
}

/// Appends all numbers of `value` and returns its shape.
fn flatten(value: &Value, numbers: &mut Vec<f32>) -> Result<Vec<usize>> {
    match value {
        Value::Array(items) => {
            let mut inner: Option<Vec<usize>> = None;
            for item in items {
                let shape = flatten(item, numbers)?;
                match &inner {
                    Some(first) if *first != shape => {
                        bail!("arrays of shapes {first:?} and {shape:?} side by side, wanted equal rows")
                    }
                    _ => inner = Some(shape),
                }
            }
            Ok([vec![items.len()], inner.unwrap_or_default()].concat())
        }
        Value::Number(number) => {
            numbers.push(number.as_f64().context("a number beyond f64")? as f32);
            Ok(Vec::new())
        }
        Value::Null => bail!("null where a number was wanted"),
        Value::Bool(_) => bail!("a truth value where a number was wanted"),
        Value::String(_) => bail!("a text where a number was wanted"),
        Value::Object(_) => bail!("an object where a number was wanted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NoiseChoice> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("noise.json");
        std::fs::write(&path, text).unwrap();
        NoiseChoice::from_file(&path)
    }

    #[test]
    fn nested_noise_is_read_row_by_row() {
        let wanted = Noise::Explicit(vec![0.5, -1.0, 2.0, 0.3, 4.0, 5.0]);
        for text in
            ["[[0.5, -1, 2], [3e-1, 4, 5]]", "[[[0.5, -1, 2], [3e-1, 4, 5]]]", "[0.5, -1, 2, 0.3, 4, 5]"]
        {
            assert_eq!(read(text).unwrap().for_model(2, 3).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn noise_of_another_shape_is_refused_even_with_as_many_numbers() {
        let error = |text: &str| format!("{:#}", read(text).and_then(|n| n.for_model(2, 3)).unwrap_err());
        assert!(error("[[1, 2], [3, 4], [5, 6]]").contains("noise of shape [3, 2], wanted [2, 3]"));
        assert!(error("[[1, 2], [3, 4, 5, 6]]").contains("shapes [2] and [4] side by side"));
        assert!(error("[[[1, 2, 3]], [[4, 5, 6]]]").contains("noise of shape [2, 1, 3]"));
        assert!(error("[]").contains("noise of shape [0]"));
        assert!(error("7").contains("noise of shape []"));
    }

    #[test]
    fn noise_that_is_not_numbers_is_refused_with_its_file() {
        for text in [r#"[["a"]]"#, "[null]", "[{}]", "[true]", "[", ""] {
            assert!(format!("{:#}", read(text).unwrap_err()).contains("noise.json"), "{text}");
        }
    }
}
