//! An observation to try, for whichever robot is served: a rendered scene on every camera, and a pose.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gr00t_host::Observation;
use gr00t_host::image::Frame;
use gr00t_host::observation::Values;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::service::{Key, Robot};

const FRAME: &[u8] = include_bytes!("../assets/demo/ego_view.png");
/// Joint angles of GR1's arms and hands, and the task.
const OBSERVATION: &str = include_str!("../assets/demo/observation.json");

#[derive(Deserialize)]
struct Pose {
    state: std::collections::BTreeMap<String, Vec<Vec<f64>>>,
    instruction: String,
}

/// The observation, and the body of `/predict` that says the same.
///
/// # Errors
/// If an asset is damaged.
pub fn observation(robot: &Robot) -> gr00t_host::Result<(Observation, Value)> {
    let pose: Pose = serde_json::from_str(OBSERVATION)
        .map_err(|error| gr00t_host::Error::Config(format!("demo observation: {error}")))?;
    let frame = Frame::decode(FRAME)?;
    let picture = STANDARD.encode(FRAME);
    let mut observation =
        Observation { instruction: Some(pose.instruction.clone()), ..Observation::default() };
    let (mut images, mut state) = (Map::new(), Map::new());
    for camera in &robot.cameras {
        observation.images.insert(camera.key.clone(), frame.clone());
        images.insert(camera.key.clone(), picture.as_str().into());
    }
    for key in &robot.state {
        let drawn = pose.state.get(&key.key).and_then(|rows| rows.first()).filter(|row| row.len() == key.dim);
        let values = drawn.cloned().unwrap_or_else(|| mean(robot, key));
        state.insert(key.key.clone(), json!([values]));
        observation.state.insert(key.key.clone(), Values::F64(values));
    }
    let body = json!({
        "images": images, "state": state, "instruction": pose.instruction,
        "embodiment": robot.data_config.embodiment.name(), "seed": 0,
    });
    Ok((observation, body))
}

/// The training data's mean pose.
fn mean(robot: &Robot, key: &Key) -> Vec<f64> {
    let known = robot.metadata.embodiment(&robot.data_config.embodiment).ok();
    let statistics = known.and_then(|(known, _)| known.statistics.state.get(&key.key));
    let mean = statistics.map(|statistics| statistics.mean.clone()).unwrap_or_default();
    if mean.len() == key.dim && mean.iter().all(|value| value.is_finite()) {
        mean
    } else {
        vec![0.0; key.dim]
    }
}
