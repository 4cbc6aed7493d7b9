//! Error answers in the form of the Python servers: `{"detail": …}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::contract;
use crate::service::{Robot, ServiceError};

/// An answer with `{"detail": detail}`.
pub(super) fn detail(status: StatusCode, detail: impl Into<Value>) -> Response {
    (status, Json(json!({ "detail": detail.into() }))).into_response()
}

/// 422: the body is not what the route reads.
pub(super) fn unprocessable(message: &str) -> Response {
    let entry = json!({ "type": "invalid_body", "loc": ["body"], "msg": message });
    detail(StatusCode::UNPROCESSABLE_ENTITY, vec![entry])
}

/// A prediction that gave no actions. What does not fit is listed beside what would.
pub(super) fn refused(error: &ServiceError, robot: Option<&Robot>) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match (error, robot) {
        (ServiceError::Invalid(problems), Some(robot)) => {
            detail(status, json!({ "errors": problems, "inputs": contract::inputs(robot) }))
        }
        _ => detail(status, error.to_string()),
    };
    if matches!(error, ServiceError::Overloaded { .. } | ServiceError::Starting) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
