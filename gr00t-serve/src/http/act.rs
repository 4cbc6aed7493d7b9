//! `POST /act`: NVIDIA's own HTTP server (`gr00t/eval/http_server.py`, GR00T N1.5), json_numpy both ways.

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tracing::warn;

use super::answer::{detail, refused, unprocessable};
use super::{App, middle};
use crate::codec::{
    CodecError, Limits, RobotKeys, Value, action_arrays, decode_act, json_numpy, observations,
};
use crate::service::ServiceError;
use crate::upstream::{self, UpstreamError};

/// Start of the keys in an answer.
const ACTION_PREFIX: &str = "action.";

/// As upstream: strict image size, fresh noise unless the key `gr00t_tt.seed` says otherwise, batches.
pub(super) async fn act(State(app): State<App>, body: Body) -> Response {
    let (bytes, share) = match middle::body(&app, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let robot = match app.service().robot() {
        Ok(robot) => robot,
        Err(error) => return refused(&error, None),
    };
    let limits = Limits { bytes: app.0.limits.body, ..Limits::default() };
    let keys = RobotKeys::from(&*robot);
    let read = move |bytes: &[u8]| observations(decode_act(bytes, limits)?.observation, &keys);
    let batch = upstream::decode(bytes, read).await;
    drop(share);
    let answer = match batch {
        Ok(batch) => upstream::answer_batch(app.service(), batch).await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(UpstreamError::Codec(CodecError::Observation(problems))) => {
            app.service().metrics().error("invalid");
            return refused(&ServiceError::Invalid(problems), Some(&robot));
        }
        Err(UpstreamError::Codec(error)) => {
            app.service().metrics().error("unprocessable");
            return unprocessable(&error.to_string());
        }
        Err(UpstreamError::Service { error, ignored }) => {
            warn!("{}: {error}; ignored keys: {ignored:?}", error.kind());
            return refused(&error, Some(&robot));
        }
    };
    for warning in &answer.warnings {
        warn!("{warning}");
    }
    match action_arrays(&answer.chunks, answer.batched, ACTION_PREFIX) {
        Ok(actions) => {
            let text = json_numpy::encode(&Value::map(actions));
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => detail(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal server error: {error}")),
    }
}
