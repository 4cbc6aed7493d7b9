//! How the time of a prediction grows with views and shrinks with threads, and what more threads than CPUs do to it.

use anyhow::{Result, anyhow};
use gr00t_host::{ModelConfig, ModelInputs};
use gr00t_model::{Policy, RunOptions};
use tt_ops::Soft;

use super::limits::Limits;
use super::measure::Times;
use super::report::Report;

/// Most views that are tried.
const VIEWS: usize = 3;
/// More threads than most machines have CPUs.
const MANY_THREADS: usize = 64;

/// Numbers of threads that are tried, on a device that has `threads` by itself.
pub(super) fn thread_counts(threads: usize) -> Vec<usize> {
    let mut counts = vec![1, threads, MANY_THREADS];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Predictions of `inputs` with its one view seen once, twice and so on.
pub(super) fn views(
    policy: &Policy<Soft>,
    inputs: &ModelInputs,
    reps: usize,
    case: &str,
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    let (model, options) = (policy.model(), RunOptions::default());
    for views in 1..=VIEWS {
        let inputs = repeated(model.config(), inputs, views);
        let name = format!("scale/{case}/{views}view/s{}", inputs.input_ids.len());
        if !report.wants(&name) {
            continue;
        }
        let times =
            Times::of(reps, || model.predict(&inputs, &options).map(drop)).map_err(|e| anyhow!("{e}"))?;
        let profile = model.profile(&inputs, &options).map_err(|e| anyhow!("{e}"))?;
        let ops = profile.iter().flat_map(|(_, ops)| ops);
        report.times(name, &times, Some(limits.of_ops(ops)));
    }
    Ok(())
}

/// The same observation with its view `views` times, each with its image tokens.
fn repeated(config: &ModelConfig, inputs: &ModelInputs, views: usize) -> ModelInputs {
    let image = config.eagle.image_token_index;
    let per_view = inputs.input_ids.iter().filter(|id| **id == image).count() / inputs.views.max(1);
    let start = inputs.input_ids.iter().position(|id| *id == image).unwrap_or_default();
    let mut repeated = inputs.clone();
    for _ in inputs.views..views {
        repeated.input_ids.splice(start..start, vec![image; per_view]);
        repeated.pixel_values.extend_from_slice(&inputs.pixel_values);
        repeated.views += 1;
    }
    repeated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_all_and_many_are_tried_once_each() {
        assert_eq!(thread_counts(2), [1, 2, 64]);
        assert_eq!(thread_counts(1), [1, 64]);
        assert_eq!(thread_counts(96), [1, 64, 96]);
    }

    #[test]
    fn a_repeated_view_has_its_tokens_and_pixels() {
        let config = ModelConfig::mini();
        let image = config.eagle.image_token_index;
        let inputs = ModelInputs {
            pixel_values: vec![1.0, 2.0],
            views: 1,
            input_ids: vec![5, image, image, 6],
            state: Vec::new(),
            noise: Vec::new(),
            embodiment_id: 0,
        };
        let three = repeated(&config, &inputs, 3);
        assert_eq!((three.views, three.pixel_values.len()), (3, 6));
        assert_eq!(three.input_ids, [&[5][..], &[image; 6], &[6]].concat());
    }
}
