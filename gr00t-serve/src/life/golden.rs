//! What the fp32 reference says for the demo: computed once, kept in the cache folder.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use gr00t_host::ModelInputs;
use gr00t_model::PackedCache;
use reference::{Observer, Part, Reference};
use sha2::{Digest, Sha256};
use tracing::warn;

use super::plan::Plan;
use super::progress::Progress;

/// Part of every key: to be raised when the reference's results change.
const FORMAT: &str = "gr00t-tt reference action_pred 2";
/// How often a boot that waits for the reference looks whether it is to stop.
const STOP_POLL: Duration = Duration::from_millis(50);
/// Elements of each tensor that go into the key.
const SAMPLE: usize = 16;

/// `action_pred` `[horizon, action_dim]` of the reference, row-major; kept beside the packed weights, where those are kept.
///
/// # Errors
/// What the reference reports, and when the boot is told to stop.
pub(super) fn action_pred(
    plan: &Arc<Plan>,
    cache: Option<&PackedCache>,
    inputs: ModelInputs,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let file = match cache {
        Some(cache) => Some(cache.root().join("reference").join(key(plan, cache.source(), &inputs)?)),
        None => None,
    };
    if let Some(values) = file.as_ref().and_then(|file| read(file, inputs.noise.len())) {
        progress.say("Reference actions: from the cache");
        return Ok(values);
    }
    let started = Instant::now();
    let once = if file.is_some() { ", once per cache folder" } else { "" };
    progress.say(&format!("Reference actions: computed in fp32{once}"));
    let (its_plan, its_progress) = (Arc::clone(plan), progress.clone());
    let values = interruptible(progress, move || run(&its_plan, &inputs, &its_progress))?;
    progress.say(&format!("Reference actions: done in {:.1} s", started.elapsed().as_secs_f64()));
    if let Some(file) = file
        && let Err(error) = write(&file, &values)
    {
        warn!("{}: {error}; the reference runs again next time", file.display());
    }
    Ok(values)
}

/// Does `work`, the reference's, on a thread that is left behind when the boot is told to stop: it cannot be interrupted, and
/// the device must be closed all the same.
fn interruptible<T: Send + 'static>(
    progress: &Progress,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("reference".into()).spawn(move || {
        let done = work();
        // nobody receives once the boot was told to stop
        let _ = sender.send(done);
    })?;
    loop {
        match receiver.recv_timeout(STOP_POLL) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => progress.check()?,
            Err(RecvTimeoutError::Disconnected) => bail!("the reference ended without a result, see the log"),
        }
    }
}

fn run(plan: &Plan, inputs: &ModelInputs, progress: &Progress) -> Result<Vec<f32>> {
    let mut reference = Reference::new(&plan.config, plan.checkpoint.weights());
    if let Some(steps) = plan.options.denoising_steps {
        reference = reference.with_denoising_steps(steps)?;
    }
    Ok(reference.predict(inputs, &mut Watch(progress))?.iter().copied().collect())
}

struct Watch<'a>(&'a Progress);

impl Observer for Watch<'_> {
    fn progress(&mut self, part: Part, done: usize, total: usize) {
        self.0.bar(&format!("Reference {}", part.name()), done, total);
    }

    fn finished(&mut self, _part: Part, _elapsed: Duration) {}
}

/// A name that another model, other weights or other inputs do not have: sizes, times and header hashes of the weight files
/// (`source`) and every tensor's name, shape and first values are in it.
fn key(plan: &Plan, source: &str, inputs: &ModelInputs) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(FORMAT);
    hash.update(source);
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
    let whole = bytes.split_at_checked(elements.checked_mul(4)?);
    let Some((values, _)) = whole.filter(|(values, hash)| Sha256::digest(values).as_slice() == *hash) else {
        warn!("{}: damaged, the reference runs again", file.display());
        return None;
    };
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn told_to_stop_it_leaves_work_that_does_not_end_behind() {
        let progress = Progress::new(None);
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let its_progress = progress.clone();
        let waiting = std::thread::spawn(move || {
            interruptible(&its_progress, move || {
                begun.send(())?;
                Ok(ends.recv()?)
            })
        });
        begins.recv().unwrap();
        progress.cancel().cancel();
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("told to stop"), "{error}");
        // the work was left in the middle, waiting for this
        end.send(()).unwrap();
    }

    #[test]
    fn work_that_ends_gives_its_result_and_work_that_panics_an_error() {
        let progress = Progress::new(None);
        assert_eq!(interruptible(&progress, || Ok(7)).unwrap(), 7);
        let error = interruptible::<()>(&progress, || panic!("as a broken reference would")).unwrap_err();
        assert!(error.to_string().contains("without a result"), "{error}");
    }
}
