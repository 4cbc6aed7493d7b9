//! The page at `/`: one answer that holds its script and style, nothing fetched from elsewhere.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

/// Written in parts, sent as one.
const PAGE: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    "<link rel=\"icon\" href=\"data:,\">\n<title>gr00t-serve</title>\n<style>\n",
    include_str!("../../assets/page/page.css"),
    "</style>\n",
    include_str!("../../assets/page/page.html"),
    "<script>\n",
    include_str!("../../assets/page/draw.js"),
    include_str!("../../assets/page/talk.js"),
    include_str!("../../assets/page/page.js"),
    "</script>\n</html>\n",
);
/// Scripts and styles are in the page itself; nothing else may be loaded.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

pub(super) async fn page() -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, POLICY), (header::CACHE_CONTROL, "no-cache")];
    (headers, Html(PAGE)).into_response()
}
