//! A download into the cache: blobs first, each through an `.incomplete` file that a later attempt goes on with,
//! links to them when all are whole.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::client::{Client, Identity};
use super::{DownloadProgress, Hub, hub_error};
use crate::checkpoint::HubRepo;
use crate::checkpoint::integrity::hex;
use crate::checkpoint::kind::{SINGLE_FILE, config_kind};
use crate::checkpoint::open::{CONFIG_FILE, EAGLE_CONFIG_FILE, METADATA_FILE, TOKENIZER_FILE};
use crate::checkpoint::shards::{INCOMPLETE, INDEX_FILE};
use crate::checkpoint::spec::{is_commit, is_repo_path};
use crate::{Error, Result};

/// Bytes that are read from the connection at a time.
const BUFFER: usize = 1 << 20;

pub(super) fn download(hub: &Hub, repo: &HubRepo, progress: DownloadProgress<'_>) -> Result<PathBuf> {
    let client = Client::new(hub, repo);
    let revision = client.revision()?;
    let files = wanted_files(revision.files().collect()).map_err(|what| hub_error(repo, what))?;
    let dir = hub.repo_dir(repo);
    let blobs = dir.join("blobs");
    fs::create_dir_all(&blobs).map_err(|e| Error::io(&blobs, e))?;

    let mut fetched = Vec::new();
    for file in files {
        let (url, identity) = client.identity(&client.file_url(&revision.sha, file))?;
        let blob = blobs.join(&identity.etag);
        if !is_whole(&blob, &identity) {
            Transfer { client: &client, repo, url: &url, identity: &identity }
                .run(&blob, &|done| progress(file, done, identity.size))?;
        }
        if file == CONFIG_FILE {
            // Gigabytes of another model are not worth fetching.
            config_kind(&blob).map_err(|what| hub_error(repo, what))?;
        }
        fetched.push((file, identity.etag));
    }

    let snapshot = dir.join("snapshots").join(&revision.sha);
    for (file, etag) in fetched {
        link(&snapshot, file, &etag)?;
    }
    if !is_commit(repo.revision()) {
        let path = dir.join("refs").join(repo.revision());
        replace(&path, |temporary| fs::write(temporary, &revision.sha))?;
    }
    Ok(snapshot)
}

/// The files of a repository that inference reads, the config first.
fn wanted_files(mut files: Vec<&str>) -> Result<Vec<&str>, String> {
    files.sort_unstable();
    if let Some(adapter) = files.iter().find(|file| file.starts_with("adapter_")) {
        return Err(format!("a LoRA adapter ({adapter}): merge it into its base model first"));
    }
    let has = |file: &str| files.contains(&file);
    let (single, sharded) = (has(SINGLE_FILE), has(INDEX_FILE));
    if !has(CONFIG_FILE) || !(single || sharded) {
        return Err(format!("the repository lacks {CONFIG_FILE}, {SINGLE_FILE} or {INDEX_FILE}"));
    }
    let is_wanted = |file: &&&str| match **file {
        CONFIG_FILE => false,
        EAGLE_CONFIG_FILE | METADATA_FILE | TOKENIZER_FILE => true,
        SINGLE_FILE => single,
        INDEX_FILE => !single,
        shard => !single && shard.ends_with(".safetensors") && !shard.contains('/'),
    };
    let mut wanted = vec![CONFIG_FILE];
    wanted.extend(files.iter().filter(is_wanted));
    match wanted.iter().find(|file| !is_repo_path(file)) {
        Some(file) => Err(format!("the repository has a file called {file:?}")),
        None => Ok(wanted),
    }
}

/// Whether the cache has the blob already; its size is looked at, its hash is not read.
fn is_whole(blob: &Path, identity: &Identity) -> bool {
    fs::metadata(blob).is_ok_and(|metadata| metadata.is_file() && metadata.len() == identity.size)
}

/// One file on its way into the cache.
struct Transfer<'a> {
    client: &'a Client<'a>,
    repo: &'a HubRepo,
    url: &'a str,
    identity: &'a Identity,
}

impl Transfer<'_> {
    fn run(&self, blob: &Path, progress: &dyn Fn(u64)) -> Result<()> {
        let partial = blob.with_file_name(format!("{}{INCOMPLETE}", self.identity.etag));
        let io = |e| Error::io(&partial, e);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&partial).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(self.error(format!("another process is writing {}", partial.display())));
            }
            Err(TryLockError::Error(e)) => return Err(io(e)),
        }
        let size = self.identity.size;
        let mut hash = Sha256::new();
        let mut done = self.hash_present(&mut file, &mut hash).map_err(io)?;
        if done < size {
            let (start, mut body) = self.client.bytes(self.url, done)?;
            if start != done {
                file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
                hash = Sha256::new();
                done = 0;
            }
            progress(done);
            let mut reader = body.with_config().limit(u64::MAX).reader();
            let mut buffer = vec![0; BUFFER];
            while done < size {
                let cut = |why: &str| {
                    self.error(format!(
                        "cut off at {done} of {size} bytes ({why}), another attempt goes on there"
                    ))
                };
                let read = reader.read(&mut buffer).map_err(|e| cut(&e.to_string()))?;
                if read == 0 {
                    return Err(cut("end of data"));
                }
                let room = (size - done).min(read as u64) as usize;
                file.write_all(&buffer[..room]).map_err(io)?;
                hash.update(&buffer[..room]);
                done += room as u64;
                progress(done);
            }
        }
        if let Some(wanted) = self.identity.sha256() {
            let found = hex(&hash.finalize());
            if found != wanted.to_lowercase() {
                fs::remove_file(&partial).map_err(io)?;
                return Err(
                    self.error(format!("SHA-256 is {found}, wanted {wanted}; the download was discarded"))
                );
            }
        }
        file.sync_all().map_err(io)?;
        fs::rename(&partial, blob).map_err(io)
    }

    /// Hashes what an earlier attempt left, and starts over if that is too long to be a beginning.
    fn hash_present(&self, file: &mut File, hash: &mut Sha256) -> std::io::Result<u64> {
        let present = file.metadata()?.len();
        if present > self.identity.size {
            file.set_len(0)?;
            return Ok(0);
        }
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return file.seek(SeekFrom::End(0));
            }
            hash.update(&buffer[..read]);
        }
    }

    fn error(&self, what: impl std::fmt::Display) -> Error {
        hub_error(self.repo, format!("{}: {what}", self.url))
    }
}

/// Links `file` in the snapshot to its blob, relative, so that the cache can be moved.
fn link(snapshot: &Path, file: &str, etag: &str) -> Result<()> {
    let up = "../".repeat(file.matches('/').count() + 2);
    replace(&snapshot.join(file), |temporary| {
        std::os::unix::fs::symlink(format!("{up}blobs/{etag}"), temporary)
    })
}

/// Makes `path` by `make` under another name and a rename, so that no one sees half of it.
fn replace(path: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let run = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        make(&temporary)?;
        fs::rename(&temporary, path)
    };
    run().map_err(|e| Error::io(path, e))
}
