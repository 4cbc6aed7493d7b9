//! The cache's layout: `models--owner--name/{refs/<revision>, snapshots/<commit>/…, blobs/<etag>}`.

use std::path::{Path, PathBuf};

use super::{Hub, hub_error};
use crate::checkpoint::HubRepo;
use crate::checkpoint::kind::SINGLE_FILE;
use crate::checkpoint::open::CONFIG_FILE;
use crate::checkpoint::shards::missing_shards;
use crate::checkpoint::spec::is_commit;
use crate::{Error, Result, read_capped};

/// Longest `refs` file that is read: a commit hash and an end of line.
const MAX_REF_BYTES: u64 = 1024;

impl Hub {
    /// Folder of all that the cache has of `repo`.
    pub(super) fn repo_dir(&self, repo: &HubRepo) -> PathBuf {
        self.cache.join(format!("models--{}--{}", repo.owner(), repo.name()))
    }

    /// The snapshot folder of `repo` if there is one, complete or not.
    pub(super) fn snapshot(&self, repo: &HubRepo) -> Result<Option<PathBuf>> {
        let dir = self.repo_dir(repo);
        let commit = if is_commit(repo.revision()) {
            repo.revision().to_owned()
        } else {
            let path = dir.join("refs").join(repo.revision());
            if !path.exists() {
                return Ok(None);
            }
            let text = match read_capped(&path, MAX_REF_BYTES) {
                Err(error @ Error::Io { .. }) => return Err(error),
                read => read.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default(),
            };
            let commit = text.trim();
            if !is_commit(commit) {
                return Err(hub_error(repo, format!("{} is not a commit hash", path.display())));
            }
            commit.to_owned()
        };
        let snapshot = dir.join("snapshots").join(commit);
        Ok(snapshot.is_dir().then_some(snapshot))
    }
}

/// Whether a snapshot has its config and all of its weights, as whole files.
pub(super) fn is_complete(snapshot: &Path) -> bool {
    let weights = snapshot.join(SINGLE_FILE).is_file()
        || missing_shards(snapshot).is_some_and(|missing| missing.is_empty());
    weights && snapshot.join(CONFIG_FILE).is_file()
}
