//! What a dataset says of itself: `info.json`, `modality.json`, `tasks.jsonl`, `episodes.jsonl`.
//! Source: LeRobot's dataset format 2, and `LeRobotModalityMetadata` of GR00T N1.5 (`gr00t/data/schema.py`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use gr00t_host::embodiment::RotationType;
use gr00t_host::read_capped;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Largest description that is read.
const MAX_BYTES: u64 = 256 << 20;

/// `info.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Info {
    codebase_version: String,
    pub(super) fps: f64,
    chunks_size: usize,
    data_path: String,
    video_path: Option<String>,
    pub(super) features: BTreeMap<String, Feature>,
}

/// One column or camera of `info.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Feature {
    pub(super) shape: Vec<usize>,
    /// What the axes are; of a vector what its elements are.
    pub(super) names: Option<serde_json::Value>,
}

/// `modality.json`: parts of columns under GR00T's keys.
#[derive(Debug, Deserialize)]
pub(super) struct Modality {
    pub(super) state: BTreeMap<String, Slice>,
    pub(super) action: BTreeMap<String, Slice>,
    pub(super) video: BTreeMap<String, Original>,
    #[serde(default)]
    annotation: BTreeMap<String, Original>,
}

/// Elements of a column.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Slice {
    pub(super) start: usize,
    pub(super) end: usize,
    original_key: Option<String>,
    #[serde(default)]
    pub(super) rotation_type: Option<RotationType>,
    #[serde(default = "yes")]
    pub(super) absolute: bool,
    /// numpy's name of the type; a float is continuous.
    #[serde(default = "float64")]
    dtype: String,
}

/// The name that the dataset itself has for a camera or an annotation.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Original {
    original_key: Option<String>,
}

/// A line of `tasks.jsonl`.
#[derive(Debug, Deserialize)]
pub(super) struct Task {
    pub(super) task_index: i64,
    pub(super) task: String,
}

/// A line of `episodes.jsonl`.
#[derive(Debug, Deserialize)]
pub(super) struct EpisodeLine {
    pub(super) episode_index: usize,
}

fn yes() -> bool {
    true
}

fn float64() -> String {
    "float64".into()
}

/// A JSON file.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_slice(&read_capped(path, MAX_BYTES)?).with_context(|| path.display().to_string())
}

/// A file of one JSON object per line.
pub(super) fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let bytes = read_capped(path, MAX_BYTES)?;
    serde_json::Deserializer::from_slice(&bytes)
        .into_iter()
        .collect::<Result<_, _>>()
        .with_context(|| path.display().to_string())
}

impl Info {
    /// Reads `info.json`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let info: Self = json(path)?;
        let shown = path.display();
        if !["v2.0", "v2.1"].contains(&info.codebase_version.as_str()) {
            bail!("{shown}: codebase_version {}, wanted v2.0 or v2.1", info.codebase_version);
        }
        if !(info.fps.is_finite() && info.fps > 0.0) || info.chunks_size == 0 {
            bail!("{shown}: fps {} and chunks_size {}, wanted more than 0", info.fps, info.chunks_size);
        }
        Ok(info)
    }

    /// An episode's parquet file, relative to the dataset.
    pub(super) fn data_file(&self, episode: usize) -> Result<PathBuf> {
        self.file("data_path", &self.data_path, episode, "")
    }

    /// A camera's video of an episode, relative to the dataset.
    pub(super) fn video_file(&self, episode: usize, key: &str) -> Result<PathBuf> {
        let template = self.video_path.as_deref().context("info.json has no video_path")?;
        self.file("video_path", template, episode, key)
    }

    fn file(&self, what: &str, template: &str, episode: usize, key: &str) -> Result<PathBuf> {
        let fill = |name: &str| match name {
            "episode_chunk" => Some(Filling::Number(episode / self.chunks_size)),
            "episode_index" => Some(Filling::Number(episode)),
            "video_key" => Some(Filling::Text(key)),
            _ => None,
        };
        let path = filled(template, fill).with_context(|| format!("info.json's {what} {template:?}"))?;
        let path = PathBuf::from(path);
        if path.components().any(|part| !matches!(part, Component::Normal(_))) {
            bail!("info.json's {what} gives {}, wanted a path inside the dataset", path.display());
        }
        Ok(path)
    }
}

enum Filling<'a> {
    Number(usize),
    Text(&'a str),
}

/// Python's `str.format` as far as LeRobot's templates use it: `{name}` and `{name:03d}`.
fn filled<'a>(template: &str, fill: impl Fn(&str) -> Option<Filling<'a>>) -> Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (field, after) = after.split_once('}').context("a { without }")?;
        let (name, format) = field.split_once(':').unwrap_or((field, ""));
        match (fill(name), format) {
            (Some(Filling::Text(value)), "") => text.push_str(value),
            (Some(Filling::Number(value)), "") => text.push_str(&value.to_string()),
            (Some(Filling::Number(value)), format) => {
                let width = format.strip_prefix('0').and_then(|f| f.strip_suffix('d')).unwrap_or("?");
                let width: usize =
                    width.parse().ok().filter(|w| *w <= 20).with_context(|| format!("format {format:?}"))?;
                write!(text, "{value:0width$}")?;
            }
            _ => bail!("field {field:?} is unknown"),
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

impl Modality {
    /// The dataset's own name of a camera.
    pub(super) fn video_key<'a>(&'a self, camera: &'a str) -> Result<&'a str> {
        let Some(original) = self.video.get(camera) else {
            let known: Vec<&str> = self.video.keys().map(String::as_str).collect();
            bail!("modality.json has no camera {camera}, it has {}", known.join(", "));
        };
        Ok(original.original_key.as_deref().unwrap_or(camera))
    }

    /// The column with the task numbers of a language key, `annotation.…`.
    pub(super) fn annotation_column<'a>(&'a self, key: &'a str) -> Result<&'a str> {
        let name = key.strip_prefix("annotation.").with_context(|| format!("language key {key}"))?;
        let Some(original) = self.annotation.get(name) else {
            let known: Vec<&str> = self.annotation.keys().map(String::as_str).collect();
            bail!("modality.json has no annotation {name}, it has {}", known.join(", "));
        };
        Ok(original.original_key.as_deref().unwrap_or(key))
    }

    /// Every column that states and actions are parts of.
    pub(super) fn columns(&self) -> BTreeSet<String> {
        let states = self.state.values().map(Slice::state_column);
        states.chain(self.action.values().map(Slice::action_column)).map(str::to_string).collect()
    }
}

impl Slice {
    /// The column that it is part of, if it is a state.
    pub(super) fn state_column(&self) -> &str {
        self.original_key.as_deref().unwrap_or("observation.state")
    }

    /// The column that it is part of, if it is an action.
    pub(super) fn action_column(&self) -> &str {
        self.original_key.as_deref().unwrap_or("action")
    }

    /// Its elements of a row of its column.
    pub(super) fn of<'a, T>(&self, row: &'a [T]) -> Result<&'a [T]> {
        let Self { start, end, .. } = self;
        row.get(*start..*end)
            .filter(|part| !part.is_empty())
            .with_context(|| format!("elements {start}..{end} of a row of {}", row.len()))
    }

    /// Whether it takes any value rather than on and off.
    pub(super) fn is_continuous(&self) -> bool {
        self.dtype.starts_with("float")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(name: &str) -> Option<Filling<'static>> {
        match name {
            "n" => Some(Filling::Number(7)),
            "t" => Some(Filling::Text("key")),
            _ => None,
        }
    }

    #[test]
    fn templates_are_filled_as_python_does() {
        assert_eq!(filled("a/{n:03d}/{t}_{n:06d}.x", fill).unwrap(), "a/007/key_000007.x");
        assert_eq!(filled("{n}", fill).unwrap(), "7");
        for wrong in ["{n", "{m}", "{n:3}", "{n:0999999999d}", "{t:03d}", "{}"] {
            assert!(filled(wrong, fill).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_slice_outside_its_row_is_an_error() {
        let slice: Slice = serde_json::from_str(r#"{"start": 1, "end": 3}"#).unwrap();
        assert_eq!(slice.of(&[1, 2, 3]).unwrap(), [2, 3]);
        assert!(slice.of(&[1, 2]).unwrap_err().to_string().contains("elements 1..3 of a row of 2"));
        let slice: Slice = serde_json::from_str(r#"{"start": 3, "end": 1}"#).unwrap();
        assert!(slice.of(&[1, 2, 3, 4]).is_err());
    }
}
