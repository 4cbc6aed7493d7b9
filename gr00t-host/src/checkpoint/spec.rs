//! What a user writes to say which weights: `synthetic`, a path, or a repository of the hub.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{Error, Result};

/// Seed of `synthetic` without a number.
pub const DEFAULT_SYNTHETIC_SEED: u64 = 0;

/// NVIDIA's GR00T N1.5-3B at the revision that this project is checked against.
pub const GR00T_N1_5_3B: &str = "nvidia/GR00T-N1.5-3B@869830fc749c35f34771aa5209f923ac57e4564e";

/// Where weights come from.
///
/// ```
/// # use gr00t_host::checkpoint::{HubRepo, WeightsSpec};
/// # fn main() -> gr00t_host::Result<()> {
/// assert_eq!("synthetic:7".parse::<WeightsSpec>()?, WeightsSpec::Synthetic { seed: 7 });
/// assert_eq!("./weights".parse::<WeightsSpec>()?, WeightsSpec::Path("./weights".into()));
/// let WeightsSpec::Hub(repo) = "someone/gr00t-so101@main".parse()? else { panic!() };
/// assert_eq!((repo.owner(), repo.name(), repo.revision()), ("someone", "gr00t-so101", "main"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsSpec {
    /// Procedural weights.
    Synthetic {
        /// Their seed.
        seed: u64,
    },
    /// A local checkpoint folder or safetensors file.
    Path(PathBuf),
    /// A repository of the Hugging Face hub.
    Hub(HubRepo),
}

impl FromStr for WeightsSpec {
    type Err = Error;

    /// `synthetic`, `synthetic:SEED`, a path, or `owner/name[@revision]`. What exists locally is a path; what does
    /// not, and has the form of a repository, is one.
    fn from_str(text: &str) -> Result<Self> {
        if text == "synthetic" {
            return Ok(Self::Synthetic { seed: DEFAULT_SYNTHETIC_SEED });
        }
        if let Some(seed) = text.strip_prefix("synthetic:") {
            let seed = seed.parse().map_err(|_| {
                Error::Config(format!("weights {text:?}: seed {seed:?} is not a number from 0 to 2^64 - 1"))
            })?;
            return Ok(Self::Synthetic { seed });
        }
        if text.is_empty() {
            return Err(Error::Config("weights: empty, wanted synthetic, a path, or owner/name".into()));
        }
        match HubRepo::parse(text) {
            Some(repo) if !Path::new(text).exists() => Ok(Self::Hub(repo)),
            _ => Ok(Self::Path(text.into())),
        }
    }
}

impl fmt::Display for WeightsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthetic { seed } => write!(f, "synthetic:{seed}"),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Hub(repo) => write!(f, "{repo}"),
        }
    }
}

/// A model repository of the hub at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRepo {
    owner: String,
    name: String,
    revision: String,
}

impl HubRepo {
    /// `owner/name[@revision]`, `None` if `text` has another form. Without a revision it is `main`, except for
    /// [`GR00T_N1_5_3B`], which is pinned.
    pub fn parse(text: &str) -> Option<Self> {
        let (repo, revision) = match text.split_once('@') {
            Some((repo, revision)) => (repo, Some(revision)),
            None => (text, None),
        };
        let (owner, name) = repo.split_once('/')?;
        let revision = revision.unwrap_or_else(|| match GR00T_N1_5_3B.split_once('@') {
            Some((pinned, commit)) if pinned == repo => commit,
            _ => "main",
        });
        let fits = is_segment(owner) && is_segment(name) && revision.split('/').all(is_segment);
        fits.then(|| Self { owner: owner.into(), name: name.into(), revision: revision.into() })
    }

    /// User or organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Name within the owner's repositories.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

impl fmt::Display for HubRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.owner, self.name, self.revision)
    }
}

/// Characters that the hub allows in names; nothing that could lead out of a folder or change a URL's meaning.
fn is_segment(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !text.is_empty() && !text.starts_with(['.', '-']) && text.bytes().all(allowed)
}

/// Whether `path` is relative, plain and inside its folder: segments as [`HubRepo`] allows, joined by `/`.
#[cfg(feature = "download")]
pub(super) fn is_repo_path(path: &str) -> bool {
    path.split('/').all(is_segment)
}

/// Whether `text` is a full commit hash.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
