//! The three requests that a download makes: list a revision's files, ask for a file's identity, read its bytes.

use std::time::Duration;

use serde::Deserialize;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::{Hub, hub_error};
use crate::Result;
use crate::checkpoint::HubRepo;
use crate::checkpoint::integrity::is_sha256;
use crate::checkpoint::spec::is_commit;

/// A connection that does not come about in this time has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A hub that does not answer, or falls silent within an answer, for this time has stalled.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest list of files that is read.
const MAX_LIST_BYTES: u64 = 16 << 20;
/// Redirects within the hub (renamed repositories) that are followed when asking for a file's identity.
const MAX_RENAMES: usize = 5;
/// Longest name of a blob: a hash in hexadecimal, with room for other kinds.
const MAX_ETAG_BYTES: usize = 128;

/// A revision as the hub lists it.
#[derive(Debug, Deserialize)]
pub(super) struct Revision {
    /// Commit hash.
    pub(super) sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Revision {
    /// Names of the files, relative to the repository.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.siblings.iter().map(|sibling| sibling.rfilename.as_str())
    }
}

/// What identifies a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Name of the blob: SHA-256 for large files, git's SHA-1 for others.
    pub(super) etag: String,
    /// Bytes.
    pub(super) size: u64,
}

impl Identity {
    /// The content's SHA-256, where the hub tells it.
    pub(super) fn sha256(&self) -> Option<&str> {
        is_sha256(&self.etag).then_some(&*self.etag)
    }
}

pub(super) struct Client<'a> {
    hub: &'a Hub,
    repo: &'a HubRepo,
    agent: Agent,
}

impl<'a> Client<'a> {
    pub(super) fn new(hub: &'a Hub, repo: &'a HubRepo) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(SILENCE_TIMEOUT))
            .timeout_per_read(Some(SILENCE_TIMEOUT))
            .timeout_per_write(Some(SILENCE_TIMEOUT))
            .accept_encoding("identity")
            .user_agent(concat!("gr00t-tt/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Self { hub, repo, agent }
    }

    /// The commit and files of the repository's revision.
    pub(super) fn revision(&self) -> Result<Revision> {
        let (owner, name) = (self.repo.owner(), self.repo.name());
        let revision = self.repo.revision().replace('/', "%2F");
        let url = format!("{}/api/models/{owner}/{name}/revision/{revision}", self.hub.endpoint);
        let mut response = self.call(&url, self.authorised(self.agent.get(&url)))?;
        self.expect(&url, &response, &[200])?;
        let revision: Revision = response
            .body_mut()
            .with_config()
            .limit(MAX_LIST_BYTES)
            .read_to_vec()
            .map_err(|e| e.to_string())
            .and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()))
            .map_err(|e| hub_error(self.repo, format!("{url}: {e}")))?;
        if !is_commit(&revision.sha) {
            return Err(hub_error(self.repo, format!("{url}: sha {:?} is not a commit hash", revision.sha)));
        }
        Ok(revision)
    }

    /// Address of `file` at `commit`.
    pub(super) fn file_url(&self, commit: &str, file: &str) -> String {
        format!("{}/{}/{}/resolve/{commit}/{file}", self.hub.endpoint, self.repo.owner(), self.repo.name())
    }

    /// Address and identity of the file at `url`. Redirects of a renamed repository are followed; the one of a large
    /// file to its storage is not, because it carries the identity. The token goes to the hub only: no request
    /// takes it along on a redirect.
    pub(super) fn identity(&self, url: &str) -> Result<(String, Identity)> {
        let mut at = url.to_owned();
        for _ in 0..=MAX_RENAMES {
            let request = self.agent.head(&at).config().max_redirects(0).build();
            let response = self.call(&at, self.authorised(request))?;
            let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let location = text("location").filter(|_| response.status().is_redirection());
            let linked = text("x-linked-etag");
            if let Some(path) = location.filter(|path| path.starts_with('/') && linked.is_none()) {
                at = format!("{}{path}", self.hub.endpoint);
                continue;
            }
            if location.is_none() {
                self.expect(&at, &response, &[200])?;
            }
            let etag = linked.or_else(|| text("etag")).map(plain_etag).unwrap_or_default();
            let size =
                text("x-linked-size").or_else(|| text("content-length")).and_then(|size| size.parse().ok());
            let fits =
                (1..=MAX_ETAG_BYTES).contains(&etag.len()) && etag.bytes().all(|b| b.is_ascii_alphanumeric());
            return match size {
                Some(size) if fits => {
                    let identity = Identity { etag: etag.to_owned(), size };
                    Ok((at, identity))
                }
                _ => Err(hub_error(self.repo, format!("{url}: no usable etag and size in the answer"))),
            };
        }
        Err(hub_error(self.repo, format!("{url}: more than {MAX_RENAMES} redirects")))
    }

    /// The bytes of the file at `url` from `start` on, or from 0 if the server does not do ranges; and which.
    pub(super) fn bytes(&self, url: &str, start: u64) -> Result<(u64, Body)> {
        let mut request = self.authorised(self.agent.get(url));
        if start > 0 {
            request = request.header(header::RANGE, format!("bytes={start}-"));
        }
        let response = self.call(url, request)?;
        self.expect(url, &response, &[200, 206])?;
        if response.status() == 200 {
            return Ok((0, response.into_body()));
        }
        let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
        match range {
            Some(range) if range.starts_with(&format!("bytes {start}-")) => Ok((start, response.into_body())),
            other => {
                Err(hub_error(self.repo, format!("{url}: asked for bytes from {start}, got range {other:?}")))
            }
        }
    }

    fn authorised<S>(&self, request: ureq::RequestBuilder<S>) -> ureq::RequestBuilder<S> {
        match &self.hub.token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {}", token.0)),
            None => request,
        }
    }

    fn call(
        &self,
        url: &str,
        request: ureq::RequestBuilder<ureq::typestate::WithoutBody>,
    ) -> Result<Response<Body>> {
        request.call().map_err(|e| hub_error(self.repo, format!("{url}: {e}")))
    }

    fn expect(&self, url: &str, response: &Response<Body>, wanted: &[u16]) -> Result<()> {
        let status = response.status().as_u16();
        if wanted.contains(&status) {
            return Ok(());
        }
        let why = match status {
            401 | 403 => ": private or gated, set HF_TOKEN to a token that has access",
            404 => ": no such repository, revision or file",
            429 => ": too many requests, try later",
            _ => "",
        };
        Err(hub_error(self.repo, format!("{url}: status {status}{why}")))
    }
}

/// An entity tag without quotes and the mark of weakness.
fn plain_etag(etag: &str) -> &str {
    etag.trim().trim_start_matches("W/").trim_matches('"')
}
