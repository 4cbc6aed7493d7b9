//! What the server says of itself: `/health`, `/info`, `/v1/models`, `/demo`, `/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gr00t_host::noise::Noise;
use serde_json::{Value, json};

use super::answer::{detail, refused};
use super::{App, contract};
use crate::about::About;
use crate::service::{Robot, ServiceError, State as Life};

/// 200 always; `status` is `starting` until the model is warm, then `ok`.
pub(super) async fn health(State(app): State<App>) -> Json<Value> {
    let life = app.service().state();
    let mut health = json!({ "status": life.name() });
    if let (Some(about), Some(fields)) = (app.about(), health.as_object_mut()) {
        fields.insert("model".into(), about.model.as_str().into());
        fields.insert("device".into(), about.device.as_str().into());
    }
    if let (Life::Starting(what) | Life::Failed(what), Some(fields)) = (life, health.as_object_mut()) {
        fields.insert("phase".into(), what.into());
    }
    Json(health)
}

/// What is served, and how.
pub(super) async fn info(State(app): State<App>) -> Response {
    let (about, robot) = match ready(&app) {
        Ok(ready) => ready,
        Err(error) => return refused(&error, None),
    };
    let limits = app.service().limits();
    let seed = match &limits.noise {
        Noise::Seed(seed) => Some(*seed),
        _ => None,
    };
    let mut info = about.details.clone();
    info.insert("status".into(), app.service().state().name().into());
    info.insert("inputs".into(), contract::inputs(&robot));
    info.insert("outputs".into(), contract::outputs(&robot));
    info.insert("noise".into(), json!({ "default_seed": seed, "generator": "torch.randn" }));
    info.insert(
        "limits".into(),
        json!({
            "queue": limits.queue, "deadline_ms": limits.deadline.as_millis() as u64, "batch": 1,
            "body_bytes": app.0.limits.body, "connections": app.0.limits.connections,
        }),
    );
    Json(info).into_response()
}

/// The model list of `OpenAI`'s API, which launchers ask whether the server is warm.
pub(super) async fn models(State(app): State<App>) -> Response {
    match (ready(&app), app.service().state()) {
        (Ok((about, _)), Life::Ready) => {
            let owner = about.model_id.split_once('/').map_or("gr00t-tt", |(owner, _)| owner);
            let model = json!({ "id": about.model_id, "object": "model", "owned_by": owner });
            Json(json!({ "object": "list", "data": [model] })).into_response()
        }
        (Ok(_), Life::Failed(what)) => detail(StatusCode::SERVICE_UNAVAILABLE, what),
        (Ok(_), _) => refused(&ServiceError::Starting, None),
        (Err(error), _) => refused(&error, None),
    }
}

/// A request that can be posted as it is, and what the fp32 reference answers.
pub(super) async fn demo(State(app): State<App>) -> Response {
    match ready(&app) {
        Ok((about, _)) => Json(about.demo.clone()).into_response(),
        Err(error) => refused(&error, None),
    }
}

/// Prometheus' text format.
pub(super) async fn metrics(State(app): State<App>) -> Response {
    match app.service().metrics().render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => detail(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// What is known once the model is warm.
fn ready(app: &App) -> Result<(&About, std::sync::Arc<Robot>), ServiceError> {
    match (app.service().robot(), app.about(), app.service().state()) {
        (Err(error), ..) => Err(error),
        (Ok(_), None, _) | (Ok(_), _, Life::Starting(_)) => Err(ServiceError::Starting),
        (Ok(robot), Some(about), _) => Ok((about, robot)),
    }
}
