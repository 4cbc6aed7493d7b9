//! Statistics and modalities of the embodiments that a checkpoint was trained on: `experiment_cfg/metadata.json`.
//! Source: NVIDIA's pydantic `DatasetMetadata` (GR00T N1.5, `gr00t/data/schema.py`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use super::rotation_type::RotationType;
use super::tag::{EmbodimentTag, is_old_agibot_name};
use crate::{Error, OneLine, Result, read_capped};

/// Largest metadata file that is read. NVIDIA's has three embodiments and is under 100 KiB.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;

/// Everything in a metadata file, per embodiment tag, in the file's spelling.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata {
    /// Tag → statistics and modalities.
    pub embodiments: BTreeMap<String, EmbodimentMetadata>,
}

/// Statistics and modalities of one embodiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbodimentMetadata {
    /// Ranges and moments of the training data.
    pub statistics: Statistics,
    /// What each key is.
    pub modalities: Modalities,
    /// The tag again.
    pub embodiment_tag: String,
}

/// Statistics per key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// State key → statistics.
    pub state: BTreeMap<String, KeyStatistics>,
    /// Action key → statistics.
    pub action: BTreeMap<String, KeyStatistics>,
}

/// Statistics of one key, one value per dimension. What the file writes as `null` is NaN here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyStatistics {
    /// Largest value.
    #[serde(deserialize_with = "numbers")]
    pub max: Vec<f64>,
    /// Smallest value.
    #[serde(deserialize_with = "numbers")]
    pub min: Vec<f64>,
    /// Mean.
    #[serde(deserialize_with = "numbers")]
    pub mean: Vec<f64>,
    /// Standard deviation.
    #[serde(deserialize_with = "numbers")]
    pub std: Vec<f64>,
    /// First percentile.
    #[serde(deserialize_with = "numbers")]
    pub q01: Vec<f64>,
    /// 99th percentile.
    #[serde(deserialize_with = "numbers")]
    pub q99: Vec<f64>,
}

/// What each key is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Modalities {
    /// Camera → its frames.
    pub video: BTreeMap<String, VideoModality>,
    /// State key → its values.
    pub state: BTreeMap<String, KeyModality>,
    /// Action key → its values.
    pub action: BTreeMap<String, KeyModality>,
}

/// One camera.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoModality {
    /// Width and height of its frames in pixels.
    pub resolution: [u32; 2],
    /// Colour channels.
    pub channels: u32,
    /// Frames per second of the training data.
    pub fps: f64,
}

/// One state or action key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyModality {
    /// Absolute values rather than changes.
    pub absolute: bool,
    /// How the values write a rotation down, if they do.
    #[serde(default)]
    pub rotation_type: Option<RotationType>,
    /// Shape of one time step.
    pub shape: Vec<usize>,
    /// Continuous rather than on/off.
    pub continuous: bool,
}

fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
}

impl EmbodimentMetadata {
    /// Ranges that are the wrong way round, a line each: their values are normalised, and actions given back, mirrored.
    ///
    /// ```
    /// use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
    /// let config = DataConfig::builtin("so100")?;
    /// let mut metadata = synthetic_metadata(&config)?;
    /// let known = metadata.embodiments.values_mut().next().unwrap();
    /// assert!(known.reversed_ranges().is_empty());
    /// let gripper = known.statistics.action.get_mut("gripper").unwrap();
    /// (gripper.min[0], gripper.max[0]) = (1.0, -1.0);
    /// assert_eq!(known.reversed_ranges(), ["action gripper: min is above max in 1 of 1"]);
    /// # Ok::<(), gr00t_host::Error>(())
    /// ```
    pub fn reversed_ranges(&self) -> Vec<String> {
        let parts = [("state", &self.statistics.state), ("action", &self.statistics.action)];
        let keys = parts
            .into_iter()
            .flat_map(|(part, keys)| keys.iter().map(move |(key, known)| (part, key, known)));
        keys.flat_map(|(part, key, known)| {
            let pairs = [("min", &known.min, "max", &known.max), ("q01", &known.q01, "q99", &known.q99)];
            pairs.into_iter().filter_map(move |(low, lows, high, highs)| {
                let reversed = lows.iter().zip(highs).filter(|(low, high)| low > high).count();
                (reversed > 0).then(|| {
                    format!("{part} {}: {low} is above {high} in {reversed} of {}", OneLine(key), lows.len())
                })
            })
        })
        .collect()
    }
}

impl Metadata {
    /// Reads a metadata file.
    ///
    /// # Errors
    /// If it can't be read, is over [`MAX_METADATA_BYTES`], or is not of this form.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_capped(path, MAX_METADATA_BYTES)?;
        Self::from_bytes(&bytes).map_err(|what| Error::Parse { path: path.to_path_buf(), what })
    }

    /// Parses the bytes of a metadata file; the error is the reason.
    ///
    /// # Errors
    /// If there are more than [`MAX_METADATA_BYTES`] or they are not of this form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_METADATA_BYTES {
            return Err(format!("metadata is larger than {MAX_METADATA_BYTES} bytes"));
        }
        serde_json::from_slice(bytes).map_err(|e| {
            let holds = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
            let hint = if e.is_syntax() && (holds(b"NaN") || holds(b"Infinity")) {
                " (the file holds NaN or Infinity, which JSON has no word for; its statistics are unusable)"
            } else {
                ""
            };
            format!("not an embodiment metadata file: {e}{hint}")
        })
    }

    /// Adds or replaces the embodiments of `other`, as a `--metadata` file does for a checkpoint without them.
    pub fn merge(&mut self, other: Self) {
        self.embodiments.extend(other.embodiments);
    }

    /// The embodiment of `tag`, and a warning if it was found under an old name.
    ///
    /// # Errors
    /// If it isn't there; the message lists what is, and says what to supply for `new_embodiment`.
    pub fn embodiment(&self, tag: &EmbodimentTag) -> Result<(&EmbodimentMetadata, Option<String>)> {
        if let Some(found) = self.embodiments.get(tag.name()) {
            return Ok((found, None));
        }
        let old = self.embodiments.iter().find(|(name, _)| is_old_agibot_name(name));
        if let (EmbodimentTag::AgibotGenie1, Some((name, found))) = (tag, old) {
            let warning =
                format!("metadata has embodiment {name}, an old name of {tag}; its statistics are used");
            return Ok((found, Some(warning)));
        }
        let present: Vec<&str> = self.embodiments.keys().map(String::as_str).collect();
        let present = if present.is_empty() { "none".to_owned() } else { present.join(", ") };
        let advice = if *tag == EmbodimentTag::NewEmbodiment {
            "; the base checkpoint doesn't know your robot: use a fine-tuned checkpoint, or supply the metadata.json of one"
        } else {
            ""
        };
        Err(Error::Metadata(format!("no embodiment {tag}, present: {present}{advice}")))
    }
}
