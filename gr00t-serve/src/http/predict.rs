//! `POST /predict`: one observation, one action chunk.

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use tracing::warn;

use super::answer::{refused, unprocessable};
use super::predict_body::{Echo, PredictBody};
use super::predict_reply::PredictReply;
use super::{App, middle};
use crate::service::{ServiceError, blocking};

/// Bodies up to this size are parsed where they arrive.
const INLINE_BYTES: usize = 1 << 20;

/// 422 for what is not this request, 400 with everything that does not fit the robot, 429 where too many wait.
pub(super) async fn predict(State(app): State<App>, body: Body) -> Response {
    // kept until the pictures are decoded: the texts of the body are parts of the request till then
    let (bytes, share) = match middle::body(&app, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    // long ones would hold up the sockets
    let parsed = if bytes.len() > INLINE_BYTES {
        blocking(move || PredictBody::parse(&bytes)).await
    } else {
        Ok(PredictBody::parse(&bytes))
    };
    let body = match parsed {
        Ok(Ok(body)) => body,
        Ok(Err(what)) => {
            app.service().metrics().error("unprocessable");
            warn!("unprocessable: {what}");
            return unprocessable(&what);
        }
        Err(error) => {
            app.service().metrics().error(error.kind());
            return refused(&error, None);
        }
    };
    let echo: Arc<OnceLock<Echo>> = Arc::default();
    let its_echo = Arc::clone(&echo);
    let result = app
        .service()
        .predict_from(move |robot| {
            let (request, echo) = body.into_request(robot);
            drop(share);
            let _ = its_echo.set(echo);
            Ok(request)
        })
        .await;
    let robot = app.service().robot();
    match (result, robot, echo.get()) {
        (Ok(reply), Ok(robot), Some(echo)) => {
            for warning in &reply.warnings {
                warn!("{warning}");
            }
            let model = app.about().map_or("", |about| about.model.as_str());
            Json(PredictReply::new(&reply, &robot, echo, model)).into_response()
        }
        (Err(error), robot, _) => {
            if let ServiceError::Invalid(problems) = &error {
                // the answer has them all
                let first = problems.first().map_or("", String::as_str);
                warn!("{}: {first} (1 of {})", error.kind(), problems.len());
            } else {
                warn!("{}: {error}", error.kind());
            }
            refused(&error, robot.ok().as_deref())
        }
        (Ok(_), ..) => refused(&ServiceError::Stopping, None),
    }
}
