//! `POST /act`: NVIDIA's own HTTP server (`gr00t/eval/http_server.py`, GR00T N1.5), json_numpy both ways.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gr00t_host::noise::Noise;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::answer::{detail, refused, unprocessable};
use super::{App, middle};
use crate::codec::{
    Batch, CodecError, Limits, RobotKeys, Value, action_arrays, decode_act, json_numpy, observations,
};
use crate::service::{Request, Robot, Rules, ServiceError};

/// Start of the keys in an answer.
const ACTION_PREFIX: &str = "action.";

/// As upstream: strict image size, fresh noise unless the key `gr00t_tt.seed` says otherwise, batches.
pub(super) async fn act(State(app): State<App>, body: Body) -> Response {
    let bytes = match middle::body(&app, body).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    let robot = match app.service().robot() {
        Ok(robot) => robot,
        Err(error) => return refused(&error, None),
    };
    let keys = robot_keys(&robot);
    let limits = Limits { bytes: app.0.limits.body, ..Limits::default() };
    let batch = match spawn_blocking(move || read(&bytes, limits, &keys)).await {
        Ok(Ok(batch)) => batch,
        Ok(Err(error)) => {
            app.service().metrics().error("unprocessable");
            return match error {
                CodecError::Observation(problems) => refused(&ServiceError::Invalid(problems), Some(&robot)),
                error => unprocessable(&error.to_string()),
            };
        }
        Err(_) => return detail(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error: reading failed"),
    };
    for key in &batch.ignored {
        warn!("key {key} is unknown, ignored");
    }
    let mut chunks = Vec::with_capacity(batch.observations.len());
    let noise = batch.seed.map_or(Noise::Fresh, Noise::Seed);
    for observation in batch.observations {
        let request = Request::new(observation).noise(noise.clone()).rules(Rules::Upstream);
        match app.service().predict(request).await {
            Ok(reply) => chunks.push(reply.chunk),
            Err(error) => {
                warn!("{}: {error}", error.kind());
                return refused(&error, Some(&robot));
            }
        }
    }
    match action_arrays(&chunks, batch.batched, ACTION_PREFIX) {
        Ok(actions) => {
            let text = json_numpy::encode(&Value::map(actions));
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => detail(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal server error: {error}")),
    }
}

fn read(bytes: &Bytes, limits: Limits, keys: &RobotKeys) -> Result<Batch, CodecError> {
    observations(decode_act(bytes, limits)?.observation, keys)
}

fn robot_keys(robot: &Robot) -> RobotKeys {
    RobotKeys {
        cameras: robot.cameras.iter().map(|camera| camera.key.clone()).collect(),
        state: robot.state.iter().map(|key| (key.key.clone(), key.dim)).collect(),
    }
}
