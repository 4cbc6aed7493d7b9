//! The TOML form of a data config, which the built-in ones use too. The format is ours; see
//! [`DataConfig::from_toml`].

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::data_config::{DEFAULT_ACTION_HORIZON, DataConfig, KeySpec};
use super::mode::NormalizationMode;
use super::rotation_type::RotationType;
use super::tag::EmbodimentTag;
use crate::{Error, Result, read_capped};

/// Largest data config file that is read.
pub const MAX_BYTES: u64 = 1 << 20;
/// Most cameras, state keys or action keys of one config; a state vector has at most 64 values.
const MAX_KEYS: usize = 64;
/// Longest action chunk that the model's position table (1024 entries) has room for.
const MAX_ACTION_HORIZON: usize = 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    name: Option<String>,
    embodiment: String,
    embodiment_id: Option<usize>,
    language: String,
    video: Vec<String>,
    state: Vec<KeyForm>,
    action: Vec<KeyForm>,
    #[serde(default = "default_horizon")]
    action_horizon: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyForm {
    key: String,
    #[serde(default)]
    mode: NormalizationMode,
    rotation: Option<RotationType>,
}

fn default_horizon() -> usize {
    DEFAULT_ACTION_HORIZON
}

pub(super) fn read(path: &Path) -> Result<DataConfig> {
    let text = String::from_utf8(read_capped(path, MAX_BYTES)?)
        .map_err(|e| Error::Parse { path: path.to_path_buf(), what: format!("not UTF-8: {e}") })?;
    let stem = path.file_stem().map_or_else(|| "data config".into(), |stem| stem.to_string_lossy());
    parse(&stem, &text).map_err(|e| match e {
        Error::DataConfig { what, .. } => Error::Parse { path: path.to_path_buf(), what },
        other => other,
    })
}

pub(super) fn parse(default_name: &str, text: &str) -> Result<DataConfig> {
    let form: FileForm = toml::from_str(text)
        .map_err(|e| Error::DataConfig { name: default_name.to_owned(), what: one_line(&e, text) })?;
    let name = form.name.unwrap_or_else(|| default_name.to_owned());
    let mut problems = Vec::new();

    let video_keys: Vec<String> = form.video.iter().map(|k| without_prefix(k, "video.")).collect();
    let state_keys = key_specs(form.state, "state.");
    let action_keys = key_specs(form.action, "action.");
    check_keys("video", video_keys.iter().map(String::as_str), &mut problems);
    check_keys("state", state_keys.iter().map(|s| s.key.as_str()), &mut problems);
    check_keys("action", action_keys.iter().map(|s| s.key.as_str()), &mut problems);
    if action_keys.is_empty() {
        problems.push("no action key".to_owned());
    }
    if video_keys.is_empty() {
        problems.push("no video key".to_owned());
    }
    if form.embodiment.is_empty() {
        problems.push("embodiment is empty".to_owned());
    }
    if form.language.is_empty() {
        problems.push("language is empty".to_owned());
    }
    if !(1..=MAX_ACTION_HORIZON).contains(&form.action_horizon) {
        problems.push(format!("action_horizon {}, wanted 1 to {MAX_ACTION_HORIZON}", form.action_horizon));
    }
    if !problems.is_empty() {
        return Err(Error::DataConfig { name, what: problems.join("; ") });
    }
    let Ok(embodiment) = form.embodiment.parse::<EmbodimentTag>();
    Ok(DataConfig {
        name,
        embodiment,
        embodiment_id: form.embodiment_id,
        video_keys,
        state_keys,
        action_keys,
        language_key: form.language,
        action_horizon: form.action_horizon,
    })
}

/// NVIDIA's spelling of a key has its modality in front; both are read.
fn without_prefix(key: &str, prefix: &str) -> String {
    key.strip_prefix(prefix).unwrap_or(key).to_owned()
}

fn key_specs(forms: Vec<KeyForm>, prefix: &str) -> Vec<KeySpec> {
    forms
        .into_iter()
        .map(|f| KeySpec { key: without_prefix(&f.key, prefix), mode: f.mode, rotation: f.rotation })
        .collect()
}

fn check_keys<'a>(modality: &str, keys: impl ExactSizeIterator<Item = &'a str>, problems: &mut Vec<String>) {
    if keys.len() > MAX_KEYS {
        problems.push(format!("{} {modality} keys, at most {MAX_KEYS}", keys.len()));
        return;
    }
    let mut seen = BTreeSet::new();
    for key in keys {
        if key.is_empty() {
            problems.push(format!("an empty {modality} key"));
        } else if !seen.insert(key) {
            problems.push(format!("{modality} key {key} twice"));
        }
    }
}

/// The parser's message and place on one line.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!("line {line}, column {column}: {message}")
        }
        None => message,
    }
}
