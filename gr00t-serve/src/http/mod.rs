//! HTTP: the routes of the Python server that this one replaces, NVIDIA's `/act`, metrics and the page.

mod act;
mod answer;
mod connections;
mod contract;
mod health;
mod middle;
mod openapi;
mod page;
mod patient;
mod predict;
mod predict_body;
mod predict_fields;
mod predict_reply;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::about::About;
use crate::auth::Token;
use crate::origin::Origins;
use crate::room::Room;
use crate::service::Service;

pub use connections::accept;
pub(crate) use predict_reply::steps;

/// Least and most pixels on each side of a frame on `/predict`.
pub const IMAGE_SIDES: std::ops::RangeInclusive<usize> = 64..=4096;

/// Bounds on what a client may do to the sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest body in bytes.
    pub body: usize,
    /// Open connections.
    pub connections: usize,
    /// Longest time for a request's head to arrive, or for the next request on a connection.
    pub head: Duration,
    /// Longest time for a body to arrive.
    pub body_time: Duration,
    /// Longest time for a client to take none of its answer.
    pub write: Duration,
    /// Web pages that may use the server, beside its own.
    pub origins: Origins,
}

impl Default for HttpLimits {
    /// Room for several uncompressed cameras; a minute for an idle connection.
    fn default() -> Self {
        Self {
            body: 64 << 20,
            connections: 256,
            head: Duration::from_mins(1),
            body_time: Duration::from_secs(30),
            write: Duration::from_secs(30),
            origins: Origins::default(),
        }
    }
}

/// What the routes share. A handle.
#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    token: Option<Token>,
    limits: HttpLimits,
    about: OnceLock<About>,
    /// Room for bodies.
    room: Room,
}

impl App {
    /// Routes for `service`; with a token, only for clients that show it.
    pub fn new(service: Service, token: Option<Token>, limits: HttpLimits) -> Self {
        let room = Room::of(limits.body);
        Self(Arc::new(Inner { service, token, limits, about: OnceLock::new(), room }))
    }

    /// Says what the server is, once.
    pub fn set_about(&self, about: About) {
        // a second call would change what clients have read already
        let _ = self.0.about.set(about);
    }

    fn service(&self) -> &Service {
        &self.0.service
    }

    /// Its bounds.
    pub(crate) fn limits(&self) -> &HttpLimits {
        &self.0.limits
    }

    fn about(&self) -> Option<&About> {
        self.0.about.get()
    }

    /// The routes.
    pub fn router(&self) -> Router {
        let guarded = Router::new()
            .route("/info", get(health::info))
            .route("/demo", get(health::demo))
            .route("/metrics", get(health::metrics))
            .route("/predict", post(predict::predict))
            .route("/act", post(act::act))
            .route_layer(from_fn_with_state(self.clone(), middle::plain_body))
            .route_layer(from_fn_with_state(self.clone(), middle::authorize));
        Router::new()
            .route("/", get(page::page))
            .route("/health", get(health::health))
            .route("/v1/models", get(health::models))
            .route("/openapi.json", get(openapi::openapi))
            .merge(guarded)
            .fallback(middle::not_found)
            .method_not_allowed_fallback(middle::method_not_allowed)
            .layer(from_fn_with_state(self.clone(), middle::trace))
            .layer(DefaultBodyLimit::disable())
            .with_state(self.clone())
    }
}
