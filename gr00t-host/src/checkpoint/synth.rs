//! Writes procedural weights as a checkpoint folder: shards, index, configs and metadata, as Hugging Face lays
//! them out.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use half::bf16;
use serde_json::{Map, Value, json};

use super::open::{CONFIG_FILE, EAGLE_CONFIG_FILE, METADATA_FILE};
use super::plan::{ExpectedTensor, expected_tensors};
use super::shards::INDEX_FILE;
use super::{Procedural, StoredDtype, TensorSource};
use crate::{Error, ModelConfig, Result};

/// Elements that are generated and written at a time.
const CHUNK: usize = 1 << 22;
/// Alignment of the first tensor's data, as the `safetensors` crate pads headers.
const HEADER_ALIGN: usize = 8;

/// Writes the weights of `config` under `seed` to the new folder `dir`, in shards of at most `shard_bytes` (one
/// tensor at least), with `config.json`, `eagle_config.json` and `experiment_cfg/metadata.json`.
///
/// Weights are generated and written piece by piece. `progress` is called with bytes done and bytes in all, and ends
/// the work with [`ControlFlow::Break`]. The folder appears when it is complete, or not at all.
///
/// # Errors
/// [`Error::Checkpoint`] if `dir` exists or `progress` broke off, [`Error::Parse`] if `metadata_json` is not a JSON object, [`Error::Io`].
pub fn write_synthetic(
    dir: impl AsRef<Path>,
    config: &ModelConfig,
    seed: u64,
    metadata_json: &str,
    shard_bytes: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<()> {
    let dir = dir.as_ref();
    if dir.symlink_metadata().is_ok() {
        return Err(Error::checkpoint(dir, "exists, and nothing is overwritten"));
    }
    if let Err(e) = serde_json::from_str::<Map<String, Value>>(metadata_json) {
        return Err(Error::Parse { path: METADATA_FILE.into(), what: e.to_string() });
    }
    let partial = partial_dir(dir)?;
    let written = write_folder(&partial, config, seed, metadata_json, shard_bytes, progress)
        .and_then(|()| fs::rename(&partial, dir).map_err(|e| Error::io(dir, e)));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

/// A new folder beside `dir`, on the same file system.
fn partial_dir(dir: &Path) -> Result<PathBuf> {
    let Some(name) = dir.file_name() else {
        return Err(Error::checkpoint(dir, "not the name of a folder"));
    };
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
    let partial = parent.join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
    fs::create_dir(&partial).map_err(|e| Error::io(&partial, e))?;
    Ok(partial)
}

fn write_folder(
    dir: &Path,
    config: &ModelConfig,
    seed: u64,
    metadata_json: &str,
    shard_bytes: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<()> {
    let weights = Procedural::new(config, seed);
    let shards = split(expected_tensors(config), shard_bytes);
    let total: u64 = shards.iter().flatten().map(tensor_bytes).sum();
    let mut done = 0;
    let mut weight_map = Map::new();
    for (index, shard) in shards.iter().enumerate() {
        let file = format!("model-{:05}-of-{:05}.safetensors", index + 1, shards.len());
        let mut step = |bytes| {
            done += bytes;
            match progress(done, total) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Error::checkpoint(dir, "interrupted, nothing is left of it")),
            }
        };
        write_shard(&dir.join(&file), &weights, shard, &mut step)?;
        weight_map.extend(shard.iter().map(|t| (t.name.clone(), Value::from(file.as_str()))));
    }
    let index = json!({ "metadata": { "total_size": total }, "weight_map": weight_map });
    write_json(&dir.join(INDEX_FILE), &index)?;
    write_json(&dir.join(CONFIG_FILE), &config.gr00t)?;
    write_json(&dir.join(EAGLE_CONFIG_FILE), &config.eagle)?;
    let metadata = dir.join(METADATA_FILE);
    if let Some(folder) = metadata.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    }
    write_file(&metadata, |out| out.write_all(metadata_json.as_bytes()))
}

/// Consecutive tensors, as many as fit into each shard.
fn split(tensors: Vec<ExpectedTensor>, shard_bytes: u64) -> Vec<Vec<ExpectedTensor>> {
    let mut shards: Vec<Vec<ExpectedTensor>> = Vec::new();
    let mut used = 0;
    for tensor in tensors {
        let bytes = tensor_bytes(&tensor);
        match shards.last_mut() {
            Some(shard) if used + bytes <= shard_bytes => {
                used += bytes;
                shard.push(tensor);
            }
            _ => {
                used = bytes;
                shards.push(vec![tensor]);
            }
        }
    }
    shards
}

fn tensor_bytes(tensor: &ExpectedTensor) -> u64 {
    (tensor.shape.iter().product::<usize>() * StoredDtype::Bf16.size()) as u64
}

fn write_shard(
    path: &Path,
    weights: &Procedural,
    tensors: &[ExpectedTensor],
    step: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!({ "format": "pt" }));
    let mut offset = 0;
    for tensor in tensors {
        let end = offset + tensor_bytes(tensor);
        let entry = json!({
            "dtype": StoredDtype::Bf16.name(),
            "shape": tensor.shape,
            "data_offsets": [offset, end],
        });
        header.insert(tensor.name.clone(), entry);
        offset = end;
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(HEADER_ALIGN), b' ');

    let io = |e| Error::io(path, e);
    let file = File::create_new(path).map_err(io)?;
    let mut out = BufWriter::new(&file);
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(&header).map_err(io)?;
    let mut buffer = vec![bf16::ZERO; CHUNK];
    for tensor in tensors {
        let elements: usize = tensor.shape.iter().product();
        for start in (0..elements).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(elements - start)];
            weights.read_bf16(&tensor.name, start, chunk)?;
            let bytes: &[u8] = bytemuck::cast_slice(chunk);
            out.write_all(bytes).map_err(io)?;
            step(bytes.len() as u64)?;
        }
    }
    out.flush().map_err(io)?;
    drop(out);
    file.sync_all().map_err(io)
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    write_file(path, |out| serde_json::to_writer_pretty(&mut *out, value).map_err(std::io::Error::from))
}

fn write_file(path: &Path, fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let file = File::create_new(path)?;
        let mut out = BufWriter::new(&file);
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        file.sync_all()
    };
    write().map_err(|e| Error::io(path, e))
}
