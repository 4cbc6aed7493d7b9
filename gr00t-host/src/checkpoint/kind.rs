//! What kind of checkpoint a folder holds, and refusals by name for the kinds that are not GR00T N1.5.

use std::path::Path;

use serde_json::Value;

use super::TensorSource;
use super::shards::{INDEX_FILE, absence, unfinished_downloads};
use crate::read_capped;

/// Name of the one file of a checkpoint that is not sharded.
pub(super) const SINGLE_FILE: &str = "model.safetensors";
/// Largest `config.json` that is looked at.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Which program wrote a `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigKind {
    /// NVIDIA's: the model's geometry.
    Nvidia,
    /// LeRobot's `GrootPolicy`: training options around N1.5-3B, whose geometry it does not repeat.
    LeRobot,
}

/// Names of model families by what `model_type` or `architectures` starts with, compared without case and
/// separators. N1.5 first, because `grootn1` is the beginning of all.
const FAMILIES: [(&str, &str); 5] = [
    ("gr00tn15", "GR00T N1.5"),
    ("gr00tn1d5", "GR00T N1.5"),
    ("gr00tn1d6", "GR00T N1.6"),
    ("gr00tn1d7", "GR00T N1.7"),
    ("gr00tn1", "GR00T N1"),
];

/// Tells whose config the file at `path` is.
///
/// # Errors
/// Why it is not one of GR00T N1.5.
pub(super) fn config_kind(path: &Path) -> Result<ConfigKind, String> {
    if !path.exists() {
        return Err(format!("config.json {}", absence(path)));
    }
    let text = read_capped(path, MAX_CONFIG_BYTES).map_err(|e| e.to_string())?;
    let json: Value = serde_json::from_slice(&text).map_err(|e| format!("config.json: {e}"))?;
    if json.get("peft_type").is_some() {
        return Err(lora("config.json has peft_type"));
    }
    if let Some(policy) = json.get("type").and_then(Value::as_str) {
        return match policy {
            "groot" => Ok(ConfigKind::LeRobot),
            other => Err(format!("config.json is of LeRobot's policy {other:?}, wanted \"groot\"")),
        };
    }
    let architecture = json.pointer("/architectures/0").and_then(Value::as_str);
    let model_type = json.get("model_type").and_then(Value::as_str);
    let Some(named) = model_type.or(architecture) else {
        return if json.get("action_head_cfg").is_some() {
            Ok(ConfigKind::Nvidia)
        } else {
            Err("config.json has neither model_type nor action_head_cfg: not a GR00T N1.5 checkpoint".into())
        };
    };
    let plain: String = named.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    match FAMILIES.iter().find(|(start, _)| plain.starts_with(start)) {
        Some((_, "GR00T N1.5")) => Ok(ConfigKind::Nvidia),
        Some((_, family)) => {
            Err(format!("this is {family} (config.json says {named:?}), only GR00T N1.5 is supported"))
        }
        None => Err(format!("config.json says {named:?}, only GR00T N1.5 (\"gr00t_n1_5\") is supported")),
    }
}

/// Refuses a folder whose weights are an adapter, a pickle, or absent.
///
/// # Errors
/// Why.
pub(super) fn refuse_weights_of(dir: &Path) -> Result<(), String> {
    for file in ["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"] {
        if dir.join(file).exists() {
            return Err(lora(file));
        }
    }
    if dir.join(SINGLE_FILE).exists() || dir.join(INDEX_FILE).exists() {
        return Ok(());
    }
    for file in [SINGLE_FILE, INDEX_FILE] {
        if dir.join(file).is_symlink() {
            return Err(format!("{file} {}{}", absence(&dir.join(file)), unfinished_downloads(dir)));
        }
    }
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .map_err(|e| e.to_string())?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let ending_in = |endings: &[&str]| -> Vec<&str> {
        let has = |name: &&str| endings.iter().any(|ending| name.ends_with(ending));
        names.iter().map(String::as_str).filter(has).collect()
    };
    let shards = ending_in(&[".safetensors"]);
    if !shards.is_empty() {
        return Err(format!("no {SINGLE_FILE} and no {INDEX_FILE}, only {}", shards.join(", ")));
    }
    let pickles = ending_in(&[".bin", ".pt", ".pth", ".ckpt", ".pkl"]);
    if !pickles.is_empty() {
        return Err(format!(
            "only pickled weights ({}), which are not read because they can run code: save as safetensors",
            pickles.join(", ")
        ));
    }
    Err(format!("no {SINGLE_FILE} and no {INDEX_FILE}{}", unfinished_downloads(dir)))
}

/// Refuses weights that hold LoRA factors.
///
/// # Errors
/// The first such tensor.
pub(super) fn refuse_lora_tensors(source: &dyn TensorSource) -> Result<(), String> {
    match source.names().into_iter().find(|name| name.contains("lora_") || name.contains(".base_layer.")) {
        Some(name) => Err(lora(&format!("tensor {name}"))),
        None => Ok(()),
    }
}

fn lora(evidence: &str) -> String {
    format!("a LoRA adapter ({evidence}): merge it into its base model first")
}
