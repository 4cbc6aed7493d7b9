//! A cache on disk of weights as the device packs them, so that a model is loaded without packing anything.
//!
//! One folder per source and packed format, one file per weight. A file that is damaged, of another version or cut short is
//! packed anew and replaced; files appear under their name only when they are complete.

mod file;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gr00t_host::checkpoint::Checkpoint;
use sha2::{Digest, Sha256};
use tt_ops::{Device, Weight, WeightSpec};

use crate::error::Result;
use file::Payload;

/// Names the cache's folder; `off` turns it off.
const VARIABLE: &str = "GR00T_TT_CACHE";
/// The folder below the user's cache folder.
const FOLDER: &str = "gr00t-tt";
/// Version of the folder's layout, of the form of its files and of how weights are fused, in every key.
const VERSION: u32 = 2;

/// Where packed weights of one checkpoint are kept.
///
/// A folder is keyed by the size, modification time and header hash of each of the checkpoint's files (the seed, for
/// synthetic weights) and by the device's packed format; a file by tensor names, rows, extents and data type, so that dtype policies
/// share what they have in common. Old folders are not removed.
///
/// ```no_run
/// use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
/// use gr00t_model::{Gr00t, PackedCache};
/// use tt_ops::Soft;
///
/// let checkpoint = Checkpoint::open(&WeightsSpec::Synthetic { seed: 0 }, &OpenOptions::new())?;
/// let model = Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), Soft::open()?)
///     .packed_cache(PackedCache::from_env(&checkpoint)?)
///     .build()?;
/// println!("{}", model.packed_cache().map(|cache| cache.to_string()).unwrap_or_default());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PackedCache {
    root: PathBuf,
    source: String,
    stats: Mutex<PackedCacheStats>,
}

/// What a cache did so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PackedCacheStats {
    /// Weights read from the cache.
    pub hits: usize,
    /// Weights packed because there was no file.
    pub misses: usize,
    /// Weights packed because their file was not usable.
    pub damaged: usize,
    /// Why files could not be written, the first reason only; loading goes on without them.
    pub write_error: Option<String>,
}

impl PackedCache {
    /// The cache for `checkpoint` in folder `root`, which need not exist. Reads sizes, times and headers of the checkpoint's files.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn new(checkpoint: &Checkpoint, root: impl AsRef<Path>) -> Result<Self> {
        let source = source::identity(checkpoint)?;
        Ok(Self { root: root.as_ref().to_path_buf(), source, stats: Mutex::default() })
    }

    /// The cache for `checkpoint` in the folder that `GR00T_TT_CACHE` names, else below the user's cache folder; `None` if the
    /// variable is `off` or there is no such folder.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        Self::folder(|name| std::env::var_os(name).map(PathBuf::from))
            .map(|root| Self::new(checkpoint, root))
            .transpose()
    }

    fn folder(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let set = |name: &str| var(name).filter(|value| !value.as_os_str().is_empty());
        match set(VARIABLE) {
            Some(value) if value.as_os_str() == "off" => None,
            Some(root) => Some(root),
            None => set("XDG_CACHE_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| Some(set("HOME")?.join(".cache")))
                .map(|cache| cache.join(FOLDER)),
        }
    }

    /// The folder of all checkpoints' weights.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What it knows its checkpoint by: size, time and header hash of each file; the seed, for synthetic weights.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it did so far.
    pub fn stats(&self) -> PackedCacheStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The weight `name` of `spec`: from its file, or made by `pack` and written.
    pub(crate) fn get_or_pack<D: Device>(
        &self,
        device: &D,
        name: &str,
        spec: WeightSpec,
        pack: impl FnOnce() -> Result<Weight<D>>,
    ) -> Result<Weight<D>> {
        let path = self.path(device, name, &spec);
        let most = file::most_bytes(spec.k, spec.n);
        let found = match Payload::open(&path, most) {
            Ok(None) => Ok(None),
            Ok(Some(file)) => {
                let read = |offset, out: &mut [u8]| file.read(offset, out);
                let weight = Weight::read(device, spec, file.length(), &read).map_err(drop);
                weight.and_then(|weight| if file.is_read() { Ok(Some(weight)) } else { Err(()) })
            }
            Err(_) => Err(()),
        };
        {
            let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
            match &found {
                Ok(Some(_)) => stats.hits += 1,
                Ok(None) => stats.misses += 1,
                Err(()) => stats.damaged += 1,
            }
        }
        if let Ok(Some(weight)) = found {
            return Ok(weight);
        }
        let weight = pack()?;
        if let Err(error) = file::write(&path, &weight.to_bytes()?) {
            let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
            stats.write_error.get_or_insert_with(|| format!("{}: {error}", path.display()));
        }
        Ok(weight)
    }

    fn path<D: Device>(&self, device: &D, name: &str, spec: &WeightSpec) -> PathBuf {
        let source = format!("{VERSION}\n{}\n{}\n{}", device.name(), device.packed_format(), self.source);
        let weight = format!("{name}\n{spec}\n{:?}", spec.order);
        self.root.join(hex(&source)).join(format!("{}.packed", hex(&weight)))
    }
}

impl fmt::Display for PackedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PackedCacheStats { hits, misses, damaged, write_error } = self.stats();
        write!(f, "packed weights in {}: {hits} read, {misses} packed", self.root.display())?;
        if damaged > 0 {
            write!(f, ", {damaged} damaged and packed anew")?;
        }
        write_error.map_or(Ok(()), |error| write!(f, ", not written: {error}"))
    }
}

/// SHA-256 of `text`, in hexadecimal.
fn hex(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(vars: &[(&str, &str)]) -> Option<PathBuf> {
        PackedCache::folder(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| PathBuf::from(v)))
    }

    #[test]
    fn the_folder_is_the_variables_or_the_users() {
        assert_eq!(folder(&[("GR00T_TT_CACHE", "/c"), ("HOME", "/h")]), Some("/c".into()));
        assert_eq!(folder(&[("GR00T_TT_CACHE", ""), ("HOME", "/h")]), Some("/h/.cache/gr00t-tt".into()));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/gr00t-tt".into()));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), Some("/h/.cache/gr00t-tt".into()));
        assert_eq!(folder(&[("GR00T_TT_CACHE", "off"), ("HOME", "/h")]), None);
        assert_eq!(folder(&[]), None);
    }
}
