//! The answer of `/predict`: the Python server's fields, then ours (`prompt`, `warnings`, `out_of_range`, `stages`).

use std::collections::BTreeMap;

use gr00t_host::action::ActionGroup;
use gr00t_host::noise::Noise;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::contract::dims;
use super::predict_body::Echo;
use crate::service::{Reply, Robot, Timings};

/// The JSON body.
#[derive(Debug, Serialize)]
pub(super) struct PredictReply<'a> {
    actions: Map<String, Value>,
    action_horizon: usize,
    action_keys: Vec<&'a str>,
    action_dims: Value,
    normalized: bool,
    embodiment: &'a str,
    embodiment_id: usize,
    version: &'static str,
    model: &'a str,
    layout: &'a str,
    images: BTreeMap<&'a str, Value>,
    seq_len: usize,
    prompt_tokens: usize,
    state_dtype: &'static str,
    noise_source: &'static str,
    seed: Option<u64>,
    timing_ms: Value,
    prompt: &'a str,
    instruction: &'a str,
    warnings: &'a [String],
    out_of_range: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_pred_normalized: Option<Vec<&'a [f32]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_pred_valid_hd: Option<Vec<&'a [f32]>>,
}

impl<'a> PredictReply<'a> {
    pub(super) fn new(reply: &'a Reply, robot: &'a Robot, echo: &'a Echo, model: &'a str) -> Self {
        let embodiment = robot.data_config.embodiment.name();
        let width = reply.action_pred.len() / robot.horizon.max(1);
        let rows = |width_of: usize| -> Vec<&'a [f32]> {
            let cut = |row: &'a [f32]| row.get(..width_of).unwrap_or(row);
            reply.action_pred.chunks(width.max(1)).map(cut).collect()
        };
        let wanted = |width_of: usize| echo.return_normalized.then(|| rows(width_of));
        Self {
            actions: reply.chunk.groups.iter().map(|group| (group.key.clone(), steps(group))).collect(),
            action_horizon: reply.chunk.horizon,
            action_keys: robot.actions.iter().map(|key| key.key.as_str()).collect(),
            action_dims: dims(&robot.actions),
            normalized: false,
            embodiment,
            embodiment_id: robot.embodiment_id,
            version: "n15",
            model,
            layout: embodiment,
            images: echo
                .received_hw
                .iter()
                .map(|(camera, hw)| (camera.as_str(), json!({ "frames": 1, "received_hw": hw })))
                .collect(),
            seq_len: reply.prompt.input_ids.len(),
            prompt_tokens: reply.prompt.instruction_tokens,
            state_dtype: echo.state_dtype,
            noise_source: if echo.client_noise { "client" } else { "seed" },
            seed: match &reply.noise {
                Noise::Seed(seed) => Some(*seed),
                _ => None,
            },
            timing_ms: timing_ms(&reply.timings),
            prompt: &reply.prompt.text,
            instruction: &reply.prompt.language,
            warnings: &reply.warnings,
            out_of_range: reply.chunk.out_of_range,
            action_pred_normalized: wanted(width),
            action_pred_valid_hd: wanted(robot.action_width),
        }
    }
}

/// `[horizon][dim]`.
pub(crate) fn steps(group: &ActionGroup) -> Value {
    group.values.chunks(group.dim.max(1)).map(|step| json!(step)).collect()
}

fn timing_ms(timings: &Timings) -> Value {
    let ms = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let stages: Map<String, Value> =
        timings.model.stages.iter().map(|s| (s.stage.name().to_owned(), ms(s.elapsed).into())).collect();
    json!({
        "decode": ms(timings.read), "encode": ms(timings.encode), "queue": ms(timings.queue),
        "device": ms(timings.device), "decode_actions": ms(timings.decode), "total": ms(timings.total),
        "stages": stages,
    })
}
