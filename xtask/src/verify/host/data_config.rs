//! A data config as NVIDIA's classes describe themselves: keys and a list of transforms.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use gr00t_host::embodiment::{DEFAULT_ACTION_HORIZON, DataConfig, KeySpec, NormalizationMode, RotationType};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::verify::report::{Row, Verdict};

/// The transform that gives sines and cosines; the others name their modes themselves.
const SIN_COS: &str = "StateActionSinCosTransform";

/// Keys with their `video.` / `state.` / `action.` prefix, and transforms in order.
#[derive(Debug, Deserialize)]
pub(super) struct UpstreamConfig {
    video_keys: Vec<String>,
    state_keys: Vec<String>,
    action_keys: Vec<String>,
    language_key: String,
    transforms: Vec<UpstreamTransform>,
}

#[derive(Debug, Deserialize)]
struct UpstreamTransform {
    #[serde(rename = "type")]
    kind: String,
    apply_to: Vec<String>,
    #[serde(default)]
    normalization_modes: BTreeMap<String, String>,
    #[serde(default)]
    target_rotations: BTreeMap<String, String>,
}

/// The config to judge `name` with, and the row that says so: the built-in one, which must say what upstream's says,
/// or upstream's where none is built in.
pub(super) fn chosen(name: &str, tag: &str, upstream: &UpstreamConfig) -> Result<(DataConfig, Row)> {
    let upstream = upstream.to_config(name, tag)?;
    let row_name = format!("{name} config");
    let Ok(built_in) = DataConfig::builtin(name) else {
        return Ok((upstream, Row::info(row_name, "not built in, read from the file")));
    };
    let mut wrong = Vec::new();
    let mut equal = |what: &str, same: bool| {
        if !same {
            wrong.push(what.to_string());
        }
    };
    equal("video keys", built_in.video_keys == upstream.video_keys);
    equal("state keys", built_in.state_keys == upstream.state_keys);
    equal("action keys", built_in.action_keys == upstream.action_keys);
    equal("language key", built_in.language_key == upstream.language_key);
    equal("embodiment", built_in.embodiment == upstream.embodiment);
    let row = if wrong.is_empty() {
        Row::new(row_name, Verdict::Pass, "built in, equal")
    } else {
        Row::fail(row_name, format!("built in with other {}", wrong.join(", ")))
    };
    Ok((built_in, row))
}

impl UpstreamConfig {
    fn to_config(&self, name: &str, tag: &str) -> Result<DataConfig> {
        Ok(DataConfig {
            name: name.to_string(),
            embodiment: tag.parse().map_err(|e| anyhow!("embodiment {tag}: {e}"))?,
            embodiment_id: None,
            video_keys: self.video_keys.iter().map(|k| bare("video.", k)).collect::<Result<_>>()?,
            state_keys: self.specs("state.", &self.state_keys)?,
            action_keys: self.specs("action.", &self.action_keys)?,
            language_key: self.language_key.clone(),
            action_horizon: DEFAULT_ACTION_HORIZON,
        })
    }

    fn specs(&self, prefix: &str, keys: &[String]) -> Result<Vec<KeySpec>> {
        keys.iter()
            .map(|key| {
                let mut spec =
                    KeySpec { key: bare(prefix, key)?, mode: NormalizationMode::None, rotation: None };
                for transform in self.transforms.iter().filter(|t| t.apply_to.contains(key)) {
                    if transform.kind == SIN_COS {
                        spec.mode = NormalizationMode::SinCos;
                    }
                    if let Some(mode) = transform.normalization_modes.get(key) {
                        let name = StrDeserializer::<ValueError>::new(mode);
                        spec.mode = NormalizationMode::deserialize(name).context(key.clone())?;
                    }
                    if let Some(rotation) = transform.target_rotations.get(key) {
                        let rotation: RotationType = rotation.parse().map_err(|e| anyhow!("{key}: {e}"))?;
                        spec.rotation = Some(rotation);
                    }
                }
                Ok(spec)
            })
            .collect()
    }
}

fn bare(prefix: &str, key: &str) -> Result<String> {
    key.strip_prefix(prefix)
        .map(str::to_string)
        .with_context(|| format!("key {key} does not start with {prefix}"))
}
