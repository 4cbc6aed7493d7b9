//! What `/info` tells: where the model runs, on which weights, how exact it is.

use std::path::Path;

use gr00t_host::checkpoint::WeightsSpec;
use gr00t_model::StructureReport;
use gr00t_model::tt_ops::Device;
use serde_json::{Map, Value, json};

use super::plan::Plan;
use super::warm_up::Warm;
use crate::about::About;

/// Terms of NVIDIA's weights; synthetic ones have none.
const WEIGHTS_LICENSE: &str =
    "NVIDIA License (non-commercial: research or evaluation use), see the weights' LICENSE";

pub(super) fn about<D: Device>(plan: &Plan, device: &D, structure: &StructureReport, warm: Warm) -> About {
    let options = &plan.options;
    let (model, model_id) = match &plan.spec {
        WeightsSpec::Hub(repo) => (repo.name().to_owned(), format!("{}/{}", repo.owner(), repo.name())),
        WeightsSpec::Synthetic { .. } => ("GR00T-N1.5-synthetic".to_owned(), "synthetic".to_owned()),
        WeightsSpec::Path(path) => {
            let name = path
                .file_name()
                .map_or_else(|| "GR00T-N1.5".into(), |name| name.to_string_lossy().into_owned());
            (name.clone(), name)
        }
    };
    let device_name = format!("{}:{}", device.name(), options.device_id);
    let head = &plan.config.gr00t.action_head_cfg;
    let details = json!({
        "model": model,
        "version": "n15",
        "task": "robot policy: one observation in, one action chunk out",
        "server": { "name": "gr00t-serve", "version": env!("CARGO_PKG_VERSION"), "license": "Apache-2.0" },
        "hardware": device_name,
        "stage": format!("traces, {}", options.trace_layout),
        "device_facts": {
            "kind": device.name(), "description": device.describe(),
            "cpu": cpu_model(), "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        },
        "policy": options.policy.name(),
        "trace_layout": options.trace_layout.name(),
        "denoising_steps": options.denoising_steps.unwrap_or(head.num_inference_timesteps),
        "weights": weights(plan),
        "weight_classes": classes(structure),
        "embodiment": plan.data_config.embodiment.name(),
        "data_config": plan.data_config.name,
        "warmup_latency_ms": warm.runs_ms,
        "warmup_fidelity_vs_golden": warm.fidelity,
        "license": if plan.is_synthetic() { "synthetic weights, of no use for a robot" } else { WEIGHTS_LICENSE },
    });
    let details = match details {
        Value::Object(details) => details,
        _ => Map::new(),
    };
    About { model, model_id, device: device_name, details, demo: warm.demo }
}

fn weights(plan: &Plan) -> Value {
    let (repo, revision, seed) = match &plan.spec {
        WeightsSpec::Hub(repo) => {
            (Some(format!("{}/{}", repo.owner(), repo.name())), Some(repo.revision()), None)
        }
        WeightsSpec::Synthetic { seed } => (None, None, Some(*seed)),
        WeightsSpec::Path(_) => (None, None, None),
    };
    json!({
        "kind": if plan.is_synthetic() { "synthetic" } else { "checkpoint" },
        "repo": repo, "revision": revision, "synthetic_seed": seed,
        "snapshot_dir": plan.checkpoint.dir().map(|dir| dir.display().to_string()),
        "source": plan.checkpoint.source().describe(),
        "files": plan.checkpoint.dir().map(files),
    })
}

/// The weight files of `dir`. The hub's cache keeps a file under its hash, which a link in the snapshot leads to; of other
/// folders the hash is not known without reading all of them.
fn files(dir: &Path) -> Vec<Value> {
    const SHA256_DIGITS: usize = 64;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<(String, Value)> = entries
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "safetensors"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let blob = std::fs::read_link(entry.path()).ok();
            let hash =
                blob.as_deref().and_then(Path::file_name).map(|blob| blob.to_string_lossy().into_owned());
            let hash = hash.filter(|hash| {
                hash.len() == SHA256_DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
            });
            let bytes = std::fs::metadata(entry.path()).map(|metadata| metadata.len()).ok();
            (name.clone(), json!({ "name": name, "bytes": bytes, "sha256": hash }))
        })
        .collect();
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    files.into_iter().map(|(_, file)| file).collect()
}

fn classes(structure: &StructureReport) -> Vec<Value> {
    structure
        .classes
        .iter()
        .map(|class| {
            json!({
                "part": class.part.name(), "role": class.role.name(), "dtype": class.dtype.to_string(),
                "tensors": class.tensors, "elements": class.elements, "bytes": class.bytes,
            })
        })
        .collect()
}

/// The processor's name as Linux tells it.
fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn files_of_the_hubs_cache_have_their_hash() {
        let folder = tempfile::tempdir().unwrap();
        let hash = "0f".repeat(32);
        std::fs::write(folder.path().join(&hash), b"abc").unwrap();
        std::os::unix::fs::symlink(folder.path().join(&hash), folder.path().join("b.safetensors")).unwrap();
        std::fs::write(folder.path().join("a.safetensors"), b"ab").unwrap();
        let wanted = [
            json!({ "name": "a.safetensors", "bytes": 2, "sha256": null }),
            json!({ "name": "b.safetensors", "bytes": 3, "sha256": hash }),
        ];
        assert_eq!(files(folder.path()), wanted);
    }
}
