//! Observation files: the JSON schema that `cargo xtask predict`, the golden cases and the demo share.
//!
//! ```json
//! {"data_config": "fourier_gr1_arms_only", "images": {"ego_view": "ego_view.png"},
//!  "state": {"left_arm": [[0.1, 0.2]]}, "state_dtype": "float64", "instruction": "pick the pear",
//!  "metadata": "metadata.json"}
//! ```
//! File names are relative to the observation's folder. `expected`, `extra_state`, `dataset_action` and `source`
//! are information for tests and people; the policy does not read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::{Observation, Values};
use crate::embodiment::DataConfig;
use crate::image::Frame;
use crate::{Error, Result, read_capped};

/// Largest observation file that is read; images have their own limit.
const MAX_JSON_BYTES: u64 = 64 << 20;
/// Largest image file that is read.
const MAX_IMAGE_BYTES: u64 = 256 << 20;

/// An observation file, parsed; images are still on disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationFile {
    /// Data config that the keys belong to, if the file names one.
    #[serde(default)]
    pub data_config: Option<String>,
    /// Camera name → image file.
    pub images: BTreeMap<String, PathBuf>,
    /// State key → `[[values]]` or `[values]`.
    pub state: BTreeMap<String, Row>,
    /// Precision of the state before normalisation.
    #[serde(default)]
    pub state_dtype: StateDtype,
    /// Task text; absent means upstream's default instruction.
    #[serde(default)]
    pub instruction: Option<String>,
    /// Statistics in the form of a checkpoint's `experiment_cfg/metadata.json`.
    #[serde(default)]
    pub metadata: Option<PathBuf>,
    /// What a golden case expects.
    #[serde(default)]
    pub expected: Option<Expected>,
    /// Recorded state that the data config does not use.
    #[serde(default)]
    pub extra_state: Option<serde_json::Value>,
    /// The dataset's own next actions.
    #[serde(default)]
    pub dataset_action: Option<serde_json::Value>,
    /// Where the observation was taken from.
    #[serde(default)]
    pub source: Option<serde_json::Value>,
    #[serde(skip)]
    folder: PathBuf,
}

/// Precision of state values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateDtype {
    /// numpy's `float32`.
    Float32,
    /// numpy's `float64`, which GR1's datasets store.
    #[default]
    Float64,
}

/// One time step of one state key.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// `[values]`.
    Flat(Vec<f64>),
    /// `[[values]]`: one time step, as upstream's policy takes it.
    Nested(Vec<Vec<f64>>),
    /// Something else; [`ObservationFile::observation`] refuses it by its key, together with all other problems.
    Other(String),
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let is_nested = value.as_array().is_some_and(|rows| rows.iter().any(serde_json::Value::is_array));
        let row = if is_nested {
            Vec::deserialize(&value).map(Self::Nested)
        } else {
            Vec::deserialize(&value).map(Self::Flat)
        };
        Ok(row.unwrap_or_else(|e| Self::Other(format!("{e}, wanted [[numbers]]"))))
    }
}

/// What a golden case expects of the whole path.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Expected {
    /// Length of the token sequence, image tokens included.
    #[serde(default)]
    pub prompt_tokens: Option<usize>,
    /// Action key → `[horizon][dim]` in physical units.
    #[serde(default)]
    pub actions: BTreeMap<String, Vec<Vec<f64>>>,
}

impl ObservationFile {
    /// Reads and parses `path`.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read_capped(path, MAX_JSON_BYTES)?;
        let mut file: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::Parse { path: path.to_path_buf(), what: e.to_string() })?;
        file.folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(file)
    }

    /// `name` relative to the observation's folder.
    pub fn resolve(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    /// The data config that the file names: a TOML file beside it, else a built-in one. `None` if it names none.
    ///
    /// # Errors
    /// Those of [`DataConfig::from_toml_file`] or [`DataConfig::builtin`].
    pub fn data_config(&self) -> Result<Option<DataConfig>> {
        let Some(name) = &self.data_config else { return Ok(None) };
        let beside = self.resolve(Path::new(name));
        let config =
            if beside.is_file() { DataConfig::from_toml_file(beside) } else { DataConfig::builtin(name) };
        config.map(Some)
    }

    /// Decodes the images and builds the observation.
    ///
    /// # Errors
    /// [`Error::Observation`] that lists every image and every state key that cannot be used.
    pub fn observation(&self) -> Result<Observation> {
        let mut problems = Vec::new();
        let mut observation = Observation { instruction: self.instruction.clone(), ..Default::default() };
        for (view, name) in &self.images {
            let path = self.resolve(name);
            match read_capped(&path, MAX_IMAGE_BYTES).and_then(|bytes| Frame::decode(&bytes)) {
                Ok(frame) => {
                    observation.images.insert(view.clone(), frame);
                }
                // An error of reading names the file itself.
                Err(e @ (Error::Io { .. } | Error::Parse { .. })) => {
                    problems.push(format!("image {view}: {e}"));
                }
                Err(e) => problems.push(format!("image {view} ({}): {}", path.display(), e.of_image())),
            }
        }
        for (key, row) in &self.state {
            match row.values() {
                Ok(values) => {
                    observation.state.insert(key.clone(), self.state_dtype.narrow(values));
                }
                Err(e) => problems.push(format!("state {key}: {e}")),
            }
        }
        if problems.is_empty() { Ok(observation) } else { Err(Error::Observation(problems)) }
    }
}

impl Row {
    fn values(&self) -> Result<Vec<f64>, String> {
        match self {
            Self::Flat(values) => Ok(values.clone()),
            Self::Nested(rows) => match rows.as_slice() {
                [row] => Ok(row.clone()),
                rows => Err(format!("{} time steps, wanted 1", rows.len())),
            },
            Self::Other(what) => Err(what.clone()),
        }
    }
}

impl StateDtype {
    /// The values in this precision.
    pub fn narrow(self, values: Vec<f64>) -> Values {
        match self {
            Self::Float32 => Values::F32(values.into_iter().map(|v| v as f32).collect()),
            Self::Float64 => Values::F64(values),
        }
    }
}
