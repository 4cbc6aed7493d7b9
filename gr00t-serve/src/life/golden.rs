//! What the fp32 reference says for the demo: computed once, kept in the cache folder.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use gr00t_host::ModelInputs;
use reference::{Observer, Part, Reference};
use sha2::{Digest, Sha256};
use tracing::warn;

use super::plan::Plan;
use super::progress::Progress;

/// Part of every key: to be raised when the reference's results change.
const FORMAT: &str = "gr00t-tt reference action_pred 1";
/// Elements of each tensor that go into the key.
const SAMPLE: usize = 16;

/// `action_pred` `[horizon, action_dim]` of the reference, row-major.
pub(super) fn action_pred(plan: &Plan, inputs: &ModelInputs, progress: &Progress) -> Result<Vec<f32>> {
    let file = plan
        .options
        .cache_dir
        .as_ref()
        .map(|folder| Ok::<_, anyhow::Error>(folder.join("reference").join(key(plan, inputs)?)))
        .transpose()?;
    if let Some(values) = file.as_ref().and_then(|file| read(file, inputs.noise.len())) {
        progress.say("Reference actions: from the cache");
        return Ok(values);
    }
    let started = Instant::now();
    let mut reference = Reference::new(&plan.config, plan.checkpoint.weights());
    if let Some(steps) = plan.options.denoising_steps {
        reference = reference.with_denoising_steps(steps)?;
    }
    progress.say("Reference actions: computed in fp32, once per cache folder");
    let values: Vec<f32> = reference.predict(inputs, &mut Watch(progress))?.iter().copied().collect();
    progress.say(&format!("Reference actions: done in {:.1} s", started.elapsed().as_secs_f64()));
    if let Some(file) = file
        && let Err(error) = write(&file, &values)
    {
        warn!("{}: {error}; the reference runs again next time", file.display());
    }
    Ok(values)
}

struct Watch<'a>(&'a Progress);

impl Observer for Watch<'_> {
    fn progress(&mut self, part: Part, done: usize, total: usize) {
        self.0.bar(&format!("Reference {}", part.name()), done, total);
    }

    fn finished(&mut self, _part: Part, _elapsed: Duration) {}
}

/// A name that another model, other weights or other inputs do not have: every tensor's name, shape and first values are in it.
fn key(plan: &Plan, inputs: &ModelInputs) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(FORMAT);
    hash.update(format!("{:?} {:?}", plan.config, plan.options.denoising_steps));
    let source = plan.checkpoint.source();
    let mut names = source.names();
    names.sort_unstable();
    for name in names {
        let Some(info) = source.info(&name) else { continue };
        if !info.dtype.is_weight() {
            continue;
        }
        let mut sample = vec![0.0; info.elements().min(SAMPLE)];
        source.read_f32(&name, 0, &mut sample)?;
        hash.update(format!("{name} {:?}", info.shape));
        for value in sample {
            hash.update(value.to_le_bytes());
        }
    }
    let ModelInputs { pixel_values, views, input_ids, state, noise, embodiment_id } = inputs;
    hash.update(format!("{views} {embodiment_id}"));
    for id in input_ids {
        hash.update(id.to_le_bytes());
    }
    for value in [pixel_values, state, noise].into_iter().flatten() {
        hash.update(value.to_le_bytes());
    }
    let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // writing to a string cannot fail
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok(hex + ".f32")
}

/// The values and, at the end, their hash; `None` for anything else.
fn read(file: &PathBuf, elements: usize) -> Option<Vec<f32>> {
    let bytes = fs::read(file).ok()?;
    let (values, hash) = bytes.split_at_checked(elements.checked_mul(4)?)?;
    if Sha256::digest(values).as_slice() != hash {
        warn!("{}: damaged, the reference runs again", file.display());
        return None;
    }
    Some(values.chunks_exact(4).filter_map(|b| Some(f32::from_le_bytes(b.try_into().ok()?))).collect())
}

fn write(file: &PathBuf, values: &[f32]) -> std::io::Result<()> {
    let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let hash = Sha256::digest(&bytes);
    bytes.extend_from_slice(&hash);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // another server may write the same file: each has its own until it is whole
    let partial = file.with_extension(format!("{}.partial", std::process::id()));
    fs::write(&partial, &bytes)?;
    fs::rename(&partial, file)
}
