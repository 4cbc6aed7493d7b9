//! Data configs: which cameras, state keys and action keys a policy reads and writes, in which order and how
//! normalised. Source: NVIDIA's data config classes (GR00T N1.5, `gr00t/experiment/data_config.py`).
//!
//! Dimensions are not in a data config: they come from the embodiment's [metadata](super::Metadata).

use std::path::Path;

use super::builtin;
use super::file;
use super::mode::NormalizationMode;
use super::rotation_type::RotationType;
use super::tag::EmbodimentTag;
use crate::Result;

/// Action steps of NVIDIA's configs and of the N1.5 checkpoint.
pub const DEFAULT_ACTION_HORIZON: usize = 16;

/// What one policy reads and writes. Keys are without the `video.` / `state.` / `action.` prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct DataConfig {
    /// The config's name.
    pub name: String,
    /// The embodiment that it is normally used with.
    pub embodiment: EmbodimentTag,
    /// Projector slot where the embodiment's own isn't meant or isn't known.
    pub embodiment_id: Option<usize>,
    /// Cameras, in prompt order.
    pub video_keys: Vec<String>,
    /// State keys, in the order of the state vector.
    pub state_keys: Vec<KeySpec>,
    /// Action keys, in the order of the action vector.
    pub action_keys: Vec<KeySpec>,
    /// The dataset's annotation that holds the instruction, with its prefix, as in `annotation.human.task_description`.
    pub language_key: String,
    /// Number of action steps, 1 or more.
    pub action_horizon: usize,
}

/// One state or action key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    /// The key.
    pub key: String,
    /// Its normalisation, applied after the rotation.
    pub mode: NormalizationMode,
    /// The representation that the model sees where the key is a rotation.
    pub rotation: Option<RotationType>,
}

impl DataConfig {
    /// The built-in config of this name, alias, or `module:Class` name of NVIDIA's examples.
    ///
    /// # Errors
    /// If there is none; the message names the nearest and lists all.
    pub fn builtin(name: &str) -> Result<Self> {
        builtin::load(name)
    }

    /// Names of the built-in configs: NVIDIA's registered ones, then the example classes.
    pub fn builtin_names() -> impl ExactSizeIterator<Item = &'static str> {
        builtin::BUILTINS.iter().map(|b| b.name)
    }

    /// Reads a config in TOML. The format is that of the built-in ones in `assets/data_configs`:
    ///
    /// ```
    /// let config = gr00t_host::embodiment::DataConfig::from_toml(
    ///     "my_arm",
    ///     r#"
    ///     embodiment = "new_embodiment"                # or any tag of the metadata file, with embodiment_id = 0..31
    ///     language = "annotation.human.task_description"
    ///     video = ["front", "wrist"]                   # prompt order
    ///     state = [                                    # order of the state vector
    ///         { key = "eef_position", mode = "min_max" },
    ///         { key = "eef_quaternion", rotation = "rotation_6d" },
    ///     ]
    ///     action = [{ key = "eef_position", mode = "min_max" }, { key = "gripper", mode = "binary" }]
    ///     action_horizon = 16                          # the default
    ///     "#,
    /// )?;
    /// assert_eq!(config.state_keys[1].key, "eef_quaternion");
    /// # Ok::<(), gr00t_host::Error>(())
    /// ```
    ///
    /// `name` is used where the text has no `name` of its own. Modes: `none` (the default), `min_max`, `q99`, `mean_std`,
    /// `binary`, and for states `scale` and `sin_cos`.
    ///
    /// # Errors
    /// If the text is not TOML of this form, or names a key twice.
    pub fn from_toml(name: &str, text: &str) -> Result<Self> {
        file::parse(name, text)
    }

    /// Reads a TOML file, see [`from_toml`](Self::from_toml). The file's stem is the default name.
    ///
    /// # Errors
    /// If the file can't be read, is over [`file::MAX_BYTES`](super::MAX_DATA_CONFIG_BYTES), or is not of this form.
    pub fn from_toml_file(path: impl AsRef<Path>) -> Result<Self> {
        file::read(path.as_ref())
    }

    /// A built-in config, or a TOML file if the argument ends in `.toml` or contains a path separator.
    ///
    /// # Errors
    /// Those of [`builtin`](Self::builtin) or [`from_toml_file`](Self::from_toml_file).
    pub fn load(name_or_path: &str) -> Result<Self> {
        let is_path = Path::new(name_or_path).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
            || name_or_path.contains(std::path::MAIN_SEPARATOR);
        if is_path { Self::from_toml_file(name_or_path) } else { Self::builtin(name_or_path) }
    }
}
