//! What every request passes: an id, a log line, the token; and the answers where there is no route.

use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::BytesMut;
use gr00t_host::OneLine;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use tracing::{Instrument, info};

use super::App;
use super::answer::detail;
use crate::request_id;
use crate::room::Share;
use crate::text::shown;

const REQUEST_ID: &str = "x-request-id";
/// Longest id that is taken over from a client.
const MAX_ID: usize = 64;

/// Gives the request an id, which the answer shows, and logs how it went.
pub(super) async fn trace(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request.headers().get(REQUEST_ID).filter(|id| is_id(id)).cloned().unwrap_or_else(new_id);
    let span = request_id::span(id.to_str().unwrap_or_default());
    let (method, route) = (request.method().clone(), route(request.uri().path()));
    app.service().metrics().request("http", route);
    let mut response = next.run(request).instrument(span.clone()).await;
    response.headers_mut().insert(REQUEST_ID, id);
    span.in_scope(|| log(&method, route, response.status(), started));
    response
}

fn log(method: &Method, route: &str, status: StatusCode, started: Instant) {
    let name = shown(method.as_str());
    let ms = started.elapsed().as_secs_f64() * 1e3;
    // probes come every few seconds and say nothing
    if method == Method::GET && status.is_success() {
        tracing::debug!("{name} {route} {} {ms:.1} ms", status.as_u16());
    } else {
        info!("{name} {route} {} {ms:.1} ms", status.as_u16());
    }
}

/// The path as a label: one of ours, so that a client cannot make up new ones.
fn route(path: &str) -> &'static str {
    const ROUTES: [&str; 9] =
        ["/", "/health", "/info", "/v1/models", "/demo", "/predict", "/act", "/metrics", "/openapi.json"];
    ROUTES.into_iter().find(|route| *route == path).unwrap_or("other")
}

fn is_id(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=MAX_ID).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

fn new_id() -> HeaderValue {
    HeaderValue::try_from(request_id::new()).unwrap_or(HeaderValue::from_static("none"))
}

/// Lets those pass who show the token, where there is one, and no pages of other sites.
pub(super) async fn authorize(State(app): State<App>, request: Request, next: Next) -> Response {
    if let Err(what) = check_origin(&app, &request) {
        app.service().metrics().error("origin");
        return detail(StatusCode::FORBIDDEN, what);
    }
    let Some(token) = &app.0.token else { return next.run(request).await };
    let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if shown.is_some_and(|shown| token.matches_header(shown)) {
        return next.run(request).await;
    }
    app.service().metrics().error("unauthorized");
    let mut response = detail(StatusCode::UNAUTHORIZED, "unauthorized: a bearer token is needed");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn check_origin(app: &App, request: &Request) -> Result<(), String> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    // a request through a proxy may have the host in its target alone
    let host =
        header(header::HOST).or_else(|| request.uri().authority().map(|host| host.as_str().as_bytes()));
    app.0.limits.origins.check(header(header::ORIGIN), host, app.0.token.is_some())
}

pub(super) async fn not_found() -> Response {
    detail(StatusCode::NOT_FOUND, "no such route; /openapi.json lists all")
}

pub(super) async fn method_not_allowed() -> Response {
    detail(StatusCode::METHOD_NOT_ALLOWED, "the route has no such method; /openapi.json lists all")
}

/// Lets bodies pass that are sent as they are.
pub(super) async fn plain_body(State(app): State<App>, request: Request, next: Next) -> Response {
    match request.headers().get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let coding = shown(&String::from_utf8_lossy(coding.as_bytes()));
            let what = format!("content-encoding {coding} is not read, send the body as it is");
            unread(&app, StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body", what)
        }
        _ => next.run(request).await,
    }
}

/// The whole body, within the limits of size, time and memory, and its share of the memory, to be kept until the body is parsed.
///
/// # Errors
/// The answer to give.
pub(super) async fn body(app: &App, body: Body) -> Result<(Bytes, Share), Response> {
    let limits = &app.0.limits;
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limits.body {
        return Err(unread(app, StatusCode::PAYLOAD_TOO_LARGE, "too_large", too_large(limits.body)));
    }
    let mut share = app.0.room.share();
    let collected = tokio::time::timeout(limits.body_time, collect(body, limits.body, &mut share)).await;
    let (status, kind, what) = match collected {
        Ok(Ok(bytes)) => return Ok((bytes, share)),
        Ok(Err(Unread::TooLarge)) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", too_large(limits.body)),
        Ok(Err(Unread::NoRoom)) => (StatusCode::TOO_MANY_REQUESTS, "no_room", share.refusal()),
        Ok(Err(Unread::Broken(what))) => (StatusCode::BAD_REQUEST, "broken_body", what),
        Err(_) => {
            let what = format!("the body did not arrive within {} s", limits.body_time.as_secs_f64());
            (StatusCode::REQUEST_TIMEOUT, "slow_body", what)
        }
    };
    Err(unread(app, status, kind, what))
}

/// Why a body was not read to its end.
enum Unread {
    TooLarge,
    NoRoom,
    Broken(String),
}

async fn collect(body: Body, most: usize, share: &mut Share) -> Result<Bytes, Unread> {
    let mut body = Limited::new(body, most);
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return Unread::TooLarge;
            }
            Unread::Broken(format!("the body broke off: {}", OneLine(error)))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if !share.grow(data.len()) {
            return Err(Unread::NoRoom);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn too_large(most: usize) -> String {
    format!("the body has more than {most} bytes")
}

/// The answer to a body whose rest is not read.
fn unread(app: &App, status: StatusCode, kind: &'static str, what: String) -> Response {
    app.service().metrics().error(kind);
    let mut response = detail(status, what);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
