//! What `/info` tells: where the model runs, on which weights, how exact it is.

use gr00t_host::checkpoint::{WeightFile, WeightsSpec};
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
        "files": files(plan),
    })
}

/// The weight files. What cannot be looked at any more is left out: the weights are loaded.
fn files(plan: &Plan) -> Vec<Value> {
    let file = |file: WeightFile| {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        json!({ "name": name, "bytes": file.bytes, "sha256": file.sha256 })
    };
    plan.checkpoint.weight_files().unwrap_or_default().into_iter().map(file).collect()
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
