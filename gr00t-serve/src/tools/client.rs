//! A light HTTP client for the tools, and for programs that start a server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::Agent;

use crate::text::cut;

/// Largest answer that is read.
const MAX_ANSWER_BYTES: u64 = 256 << 20;
/// Characters that are shown of what a server said, which may be no server of ours.
const MAX_SHOWN: usize = 300;

/// Talks to one server, with the token of `GR00T_API_TOKEN` where there is one.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
}

impl Client {
    /// A client of the server at `url` that waits for each answer as long as `timeout`.
    pub fn new(url: &str, timeout: Duration) -> Self {
        let agent =
            Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout)).build().into();
        let token = std::env::var("GR00T_API_TOKEN")
            .ok()
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty());
        Self { agent, url: url.trim_end_matches('/').to_owned(), token }
    }

    /// Status and body of a GET; a body that is not JSON is a string.
    ///
    /// # Errors
    /// If there is no answer, or one that is too large.
    pub fn get(&self, path: &str) -> Result<(u16, Value)> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.call().with_context(|| format!("GET {}{path}", self.url))?;
        read(response)
    }

    /// Status and body of a POST of JSON; a body that is not JSON is a string.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn post(&self, path: &str, body: &[u8]) -> Result<(u16, Value)> {
        let mut request =
            self.agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.send(body).with_context(|| format!("POST {}{path}", self.url))?;
        read(response)
    }

    /// The body of a GET that must succeed.
    ///
    /// # Errors
    /// As [`get`](Self::get), and another status than 200.
    pub fn get_ok(&self, path: &str) -> Result<Value> {
        match self.get(path)? {
            (200, body) => Ok(body),
            (401, _) => bail!("GET {path}: 401, the server wants its token: set GR00T_API_TOKEN"),
            (status, body) => bail!("GET {path}: {status} {}", cut(&body.to_string(), MAX_SHOWN)),
        }
    }

    /// Waits until the server is warm.
    pub(super) fn wait(&self, limit: Duration) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(500);
        let until = std::time::Instant::now() + limit;
        loop {
            let status = match self.get("/health") {
                Ok((200, health)) if health["status"] == "ok" => return Ok(()),
                Ok((status, health)) => format!("{status} {health}"),
                Err(error) => format!("{error:#}"),
            };
            if std::time::Instant::now() >= until {
                bail!("{} is not ready after {} s: {status}", self.url, limit.as_secs());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Result<(u16, Value)> {
    let status = response.status().as_u16();
    let bytes = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok((status, body))
}
