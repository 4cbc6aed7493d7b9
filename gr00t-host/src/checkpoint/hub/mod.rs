//! The Hugging Face hub: its cache on disk, read without network, and downloads into it when asked for.
//!
//! Layout and environment variables are those of `huggingface_hub`
//! (<https://huggingface.co/docs/huggingface_hub/guides/manage-cache>), so that a cache is shared with it.

mod cache;
#[cfg(feature = "download")]
mod client;
#[cfg(feature = "download")]
mod download;

use std::fmt;
use std::path::PathBuf;

use super::HubRepo;
use crate::{Error, Result};

/// Where the hub is, unless `HF_ENDPOINT` says otherwise.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// The hub and its local cache.
#[derive(Debug, Clone)]
pub struct Hub {
    cache: PathBuf,
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    endpoint: String,
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    token: Option<Token>,
    offline: bool,
}

/// An access token; never printed.
#[derive(Clone)]
#[cfg_attr(not(feature = "download"), allow(dead_code))]
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Called during a download with the file's name, its bytes done and its bytes in all.
pub type DownloadProgress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

impl Hub {
    /// As the environment says: `HF_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME` or `HOME` for the cache, `HF_ENDPOINT`,
    /// `HF_TOKEN`, `HF_HUB_OFFLINE`.
    ///
    /// # Errors
    /// [`Error::Config`] if no variable says where the cache is.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// As [`Hub::from_env`], with variables looked up by `var`; empty ones count as unset.
    ///
    /// # Errors
    /// [`Error::Config`] if no variable says where the cache is.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let path = |name: &str| var(name).map(PathBuf::from);
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
            .or_else(|| path("HOME").map(|home| home.join(".cache/huggingface/hub")))
            .ok_or_else(|| {
                Error::Config("hub cache: none of HF_HUB_CACHE, HF_HOME and HOME is set".into())
            })?;
        let endpoint = var("HF_ENDPOINT").unwrap_or_else(|| DEFAULT_ENDPOINT.into());
        let is_true = |value: String| matches!(value.to_lowercase().as_str(), "1" | "on" | "yes" | "true");
        Ok(Self {
            cache,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: var("HF_TOKEN").map(|token| Token(token.trim().to_owned())),
            offline: var("HF_HUB_OFFLINE").is_some_and(is_true),
        })
    }

    /// The snapshot folder of `repo` in the cache, without network.
    ///
    /// # Errors
    /// [`Error::Hub`] if it is not there.
    pub fn locate(&self, repo: &HubRepo) -> Result<PathBuf> {
        self.snapshot(repo)?.ok_or_else(|| {
            hub_error(
                repo,
                format!("not in the cache {}, and no download was asked for", self.cache.display()),
            )
        })
    }

    /// The snapshot folder of `repo`, fetched where the cache lacks files of it.
    ///
    /// A complete snapshot is used without network. What fails leaves the cache as it was, except for
    /// `.incomplete` files, from which the next attempt goes on, and blobs that are whole.
    ///
    /// # Errors
    /// [`Error::Hub`] if `HF_HUB_OFFLINE` forbids it, the hub refuses, the connection fails, or what came is not
    /// what was announced; [`Error::Io`].
    #[cfg(feature = "download")]
    pub fn download(&self, repo: &HubRepo, progress: DownloadProgress<'_>) -> Result<PathBuf> {
        if let Some(snapshot) = self.snapshot(repo)?.filter(|dir| cache::is_complete(dir)) {
            return Ok(snapshot);
        }
        if self.offline {
            return Err(hub_error(repo, "not complete in the cache, and HF_HUB_OFFLINE forbids a download"));
        }
        download::download(self, repo, progress)
    }

    /// Without the feature `download`: an error, unless the cache has a complete snapshot.
    ///
    /// # Errors
    /// [`Error::Hub`].
    #[cfg(not(feature = "download"))]
    pub fn download(&self, repo: &HubRepo, _progress: DownloadProgress<'_>) -> Result<PathBuf> {
        if let Some(snapshot) = self.snapshot(repo)?.filter(|dir| cache::is_complete(dir)) {
            return Ok(snapshot);
        }
        let why =
            if self.offline { "HF_HUB_OFFLINE forbids" } else { "a build without feature `download` lacks" };
        Err(hub_error(repo, format!("not complete in the cache, and {why} a download")))
    }
}

fn hub_error(repo: &HubRepo, what: impl Into<String>) -> Error {
    Error::Hub { repo: repo.to_string(), what: what.into() }
}
