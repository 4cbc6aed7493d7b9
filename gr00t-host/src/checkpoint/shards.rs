//! Several safetensors files and the index that says which tensor is in which.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use half::bf16;
use serde::Deserialize;

use super::json_map::UniqueEntries;
use super::{SafetensorsFile, TensorInfo, TensorSource};
use crate::{Error, Result, read_capped};

/// Name of the index in a sharded checkpoint folder.
pub(super) const INDEX_FILE: &str = "model.safetensors.index.json";
/// Longest index that is read: N1.5's is 0.1 MB.
const MAX_INDEX_BYTES: u64 = 32 << 20;
/// Most shards that are opened: N1.5 has 3.
const MAX_SHARDS: usize = 4096;
/// Ending of a file that the hub's clients have not finished fetching.
pub(super) const INCOMPLETE: &str = ".incomplete";

#[derive(Deserialize)]
struct Index {
    weight_map: UniqueEntries<String>,
}

/// A sharded checkpoint, all shards open and checked.
#[derive(Debug)]
pub struct ShardedSafetensors {
    dir: PathBuf,
    shards: Vec<SafetensorsFile>,
    order: Vec<String>,
    /// Shard of each tensor.
    place: HashMap<String, usize>,
}

impl ShardedSafetensors {
    /// Opens the shards that `model.safetensors.index.json` in `dir` names.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Parse`] for the index; [`Error::Checkpoint`] that lists every shard that is
    /// missing, half downloaded, damaged or outside the folder, and every tensor that is not where the index
    /// says.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let files = read_index(&dir.join(INDEX_FILE))?;
        let mut problems = Vec::new();
        if files.is_empty() {
            problems.push(format!("{INDEX_FILE} names no tensor"));
        }
        if files.len() > MAX_SHARDS {
            return Err(Error::checkpoint(
                dir,
                format!("{} shards, at most {MAX_SHARDS} expected", files.len()),
            ));
        }
        let mut opened =
            Self { dir: dir.to_path_buf(), shards: Vec::new(), order: Vec::new(), place: HashMap::new() };
        for (file, tensors) in files {
            match open_shard(dir, &file, &tensors) {
                Ok(shard) => opened.add(shard, &file, &tensors, &mut problems),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(opened) } else { Err(Error::checkpoint(dir, problems.join("; "))) }
    }

    fn add(&mut self, shard: SafetensorsFile, file: &str, tensors: &[String], problems: &mut Vec<String>) {
        let absent: Vec<&str> =
            tensors.iter().filter(|name| shard.info(name).is_none()).map(String::as_str).collect();
        if !absent.is_empty() {
            problems.push(format!("{file} lacks what the index puts there: {}", absent.join(", ")));
        }
        for name in shard.names() {
            if let Some(&other) = self.place.get(&name) {
                let other = self.shards[other].path().display();
                problems.push(format!("tensor {name} is in {file} and in {other}"));
            } else {
                self.place.insert(name.clone(), self.shards.len());
                self.order.push(name);
            }
        }
        self.shards.push(shard);
    }

    /// The shards, in the order of their names.
    pub fn shards(&self) -> &[SafetensorsFile] {
        &self.shards
    }

    fn shard(&self, name: &str) -> Result<&SafetensorsFile> {
        let index = self.place.get(name).copied();
        index
            .and_then(|index| self.shards.get(index))
            .ok_or_else(|| Error::tensor(name, format!("not in {}", self.describe())))
    }
}

impl TensorSource for ShardedSafetensors {
    fn describe(&self) -> String {
        format!("{} ({} shards)", self.dir.display(), self.shards.len())
    }

    fn names(&self) -> Vec<String> {
        self.order.clone()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.shard(name).ok()?.info(name)
    }

    fn read_f32(&self, name: &str, start: usize, out: &mut [f32]) -> Result<()> {
        self.shard(name)?.read_f32(name, start, out)
    }

    fn read_bf16(&self, name: &str, start: usize, out: &mut [bf16]) -> Result<()> {
        self.shard(name)?.read_bf16(name, start, out)
    }
}

/// Tensors per shard.
fn read_index(path: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let text = read_capped(path, MAX_INDEX_BYTES)?;
    let index: Index = serde_json::from_slice(&text)
        .map_err(|e| Error::Parse { path: path.to_path_buf(), what: e.to_string() })?;
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (tensor, file) in index.weight_map.0 {
        files.entry(file).or_default().push(tensor);
    }
    Ok(files)
}

/// Files that the index of `dir` names and that are not there as whole files; `None` without a readable index.
pub(super) fn missing_shards(dir: &Path) -> Option<Vec<String>> {
    let files = read_index(&dir.join(INDEX_FILE)).ok()?;
    Some(files.into_keys().filter(|file| !is_plain_name(file) || !dir.join(file).is_file()).collect())
}

fn open_shard(dir: &Path, file: &str, tensors: &[String]) -> Result<SafetensorsFile, String> {
    let for_tensors = match tensors {
        [first] => format!("for {first}"),
        [first, rest @ ..] => format!("for {first} and {} more", rest.len()),
        [] => String::new(),
    };
    if !is_plain_name(file) {
        return Err(format!("shard {file:?} ({for_tensors}) is not a file name inside the folder"));
    }
    let path = dir.join(file);
    if !path.exists() {
        return Err(format!("shard {file} ({for_tensors}) {}{}", absence(&path), unfinished_downloads(dir)));
    }
    SafetensorsFile::open(&path).map_err(|e| match e {
        Error::Checkpoint { what, .. } => format!("{file}: {what}"),
        other => other.to_string(),
    })
}

/// A name that cannot lead out of the folder it is joined to.
pub(super) fn is_plain_name(file: &str) -> bool {
    !file.is_empty() && file != "." && file != ".." && !file.contains(['/', '\\', '\0'])
}

/// How a path that does not exist is absent.
pub(super) fn absence(path: &Path) -> String {
    match fs::read_link(path) {
        Ok(target) => format!("is a dangling link to {}", target.display()),
        Err(_) => "is missing".into(),
    }
}

/// A note on `.incomplete` files beside the snapshot `dir` of a hub cache, empty if there are none.
pub(super) fn unfinished_downloads(dir: &Path) -> String {
    let here = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf());
    let Some(blobs) = here.parent().and_then(Path::parent).map(|repo| repo.join("blobs")) else {
        return String::new();
    };
    let mut names: Vec<String> = fs::read_dir(&blobs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(INCOMPLETE))
        .collect();
    names.sort();
    if names.is_empty() {
        String::new()
    } else {
        format!(", unfinished download: blobs/{}", names.join(", blobs/"))
    }
}
