//! The page at `/`: one file, nothing fetched from elsewhere.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

const PAGE: &str = include_str!("../../assets/page.html");
/// Scripts and styles are in the page itself; nothing else may be loaded.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
                      connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

pub(super) async fn page() -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, POLICY), (header::CACHE_CONTROL, "no-cache")];
    (headers, Html(PAGE)).into_response()
}
