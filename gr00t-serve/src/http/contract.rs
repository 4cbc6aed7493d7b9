//! The observation that the served robot needs, as `/info` and refusals describe it.

use gr00t_host::prompt::MAX_INSTRUCTION_CHARS;
use serde_json::{Map, Value, json};

use super::IMAGE_SIDES;
use crate::service::{Key, Robot};

/// What a request holds.
pub(super) fn inputs(robot: &Robot) -> Value {
    let images: Map<String, Value> = robot
        .cameras
        .iter()
        .map(|camera| {
            let trained = camera.resolution.map(|(width, height)| [height, width]);
            (
                camera.key.clone(),
                json!({ "encoding": "base64 of a PNG, JPEG, WebP or BMP", "trained_hw": trained }),
            )
        })
        .collect();
    json!({
        "images": images,
        "image_sides_px": [IMAGE_SIDES.start(), IMAGE_SIDES.end()],
        "state": dims(&robot.state),
        "instruction": { "characters": [1, MAX_INSTRUCTION_CHARS], "aliases": ["language", "prompt"] },
        "embodiment": robot.data_config.embodiment.name(),
        "data_config": robot.data_config.name,
        "noise": [robot.horizon, robot.action_dim],
    })
}

/// What an answer holds.
pub(super) fn outputs(robot: &Robot) -> Value {
    json!({
        "action_horizon": robot.horizon,
        "action_keys": robot.actions.iter().map(|key| key.key.as_str()).collect::<Vec<_>>(),
        "action_dims": dims(&robot.actions),
    })
}

/// Key → values per time step, in the model's order.
pub(super) fn dims(keys: &[Key]) -> Value {
    Value::Object(keys.iter().map(|key| (key.key.clone(), Value::from(key.dim))).collect())
}
