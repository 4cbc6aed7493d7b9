//! One episode, open-loop: predictions from recorded observations beside the recorded actions.
//! Mirrors `calc_mse_for_single_trajectory` (GR00T N1.5, `gr00t/utils/eval.py`).

use std::time::Instant;

use anyhow::{Context, Result, bail};
use gr00t_host::embodiment::DataConfig;
use gr00t_host::noise::Noise;
use gr00t_host::observation::Observation;
use serde::Serialize;

use super::dataset::{Dataset, Episode};
use crate::progress::Progress;
use crate::quantile::{quantile, sorted};
use crate::robot::Robot;
use crate::subject::Subject;

/// What all episodes have in common.
#[derive(Debug)]
pub(super) struct OpenLoop<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) robot: &'a Robot,
    /// Action keys, in the order of their joints.
    pub(super) keys: Vec<String>,
    /// Most time steps.
    pub(super) steps: usize,
    /// Time steps from one prediction to the next.
    pub(super) action_horizon: usize,
    /// Of the first prediction's noise.
    pub(super) seed: u64,
}

/// One evaluated episode.
#[derive(Debug, Serialize)]
pub(super) struct Trajectory {
    /// The dataset's number of it.
    pub(super) episode: usize,
    /// Instruction of the first step.
    pub(super) instruction: String,
    /// Time steps that were evaluated.
    pub(super) steps: usize,
    /// Time steps at which the policy was asked.
    pub(super) inference_at: Vec<usize>,
    /// Mean squared error of all joints and steps, in the actions' units.
    pub(super) mse: f64,
    /// Action values outside the statistics' range.
    pub(super) out_of_range: usize,
    /// Median wall time of a prediction with the host's share. The first one captures, too, and is all that there is of a
    /// single prediction.
    pub(super) predict_ms: f64,
    pub(super) joints: Vec<Joint>,
}

/// One joint over the evaluated steps, in its own unit.
#[derive(Debug, Serialize)]
pub(super) struct Joint {
    /// Action key and place in it.
    pub(super) name: String,
    /// Mean squared error.
    pub(super) mse: f64,
    /// Recorded state, where the key is a state of the same width too.
    pub(super) state: Option<Vec<f64>>,
    /// Recorded action.
    pub(super) recorded: Vec<f64>,
    /// Predicted action.
    pub(super) predicted: Vec<f64>,
}

/// The action keys that `asked` names; all of them if it names none.
pub(super) fn chosen(asked: &[String], config: &DataConfig) -> Result<Vec<String>> {
    let known: Vec<String> = config.action_keys.iter().map(|spec| spec.key.clone()).collect();
    match asked.iter().find(|key| !known.contains(key)) {
        Some(unknown) => bail!("{} has no action {unknown}, it has {}", config.name, known.join(", ")),
        None if asked.is_empty() => Ok(known),
        None => Ok(asked.to_vec()),
    }
}

/// The steps between predictions.
pub(super) fn horizon(asked: Option<usize>, predicted: usize) -> Result<usize> {
    match asked.unwrap_or(predicted) {
        steps if (1..=predicted).contains(&steps) => Ok(steps),
        steps => {
            bail!("action horizon {steps}, wanted 1 to {predicted}, which is what the data config predicts")
        }
    }
}

impl OpenLoop<'_> {
    /// Evaluates the episode at `place`. Unlike upstream, which repeats an episode's last step, it ends where the episode ends.
    pub(super) fn evaluate(
        &self,
        place: usize,
        subject: &Subject,
        progress: &Progress,
    ) -> Result<Trajectory> {
        let episode = self.dataset.episode(place, &self.robot.data_config)?;
        let steps = self.steps.min(episode.len());
        if steps == 0 {
            bail!("no time step to evaluate");
        }
        let inference_at: Vec<usize> = (0..steps).step_by(self.action_horizon).collect();
        let observations = self.observations(&episode, &inference_at)?;
        let mut predicted: Vec<Vec<Vec<f64>>> = vec![Vec::new(); self.keys.len()];
        let (mut out_of_range, mut times) = (0, Vec::new());
        let total = inference_at.len() as u64;
        for (number, observation) in (0u64..).zip(&observations) {
            progress.set("predicting", number, total);
            let noise = Noise::Seed(self.seed.wrapping_add(number));
            let started = Instant::now();
            let encoded = self.robot.encoder.encode(observation, &noise)?;
            let chunk = self.robot.decoder.decode(&subject.predict(&encoded.inputs)?.0)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            out_of_range += chunk.out_of_range;
            for (key, rows) in self.keys.iter().zip(&mut predicted) {
                let group = chunk.group(key).with_context(|| format!("no action {key} was predicted"))?;
                let taken = group.values.chunks_exact(group.dim).take(self.action_horizon);
                rows.extend(taken.map(|row| row.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>()));
            }
        }
        let joints = self.joints(&episode, steps, &predicted)?;
        Ok(Trajectory {
            episode: episode.index,
            instruction: episode.instruction(0).unwrap_or_default().to_string(),
            steps,
            inference_at,
            mse: mean(joints.iter().map(|joint| joint.mse)),
            out_of_range,
            predict_ms: quantile(&sorted(times.into_iter()), 0.5),
            joints,
        })
    }

    /// What the robot saw at the given steps.
    fn observations(&self, episode: &Episode, at: &[usize]) -> Result<Vec<Observation>> {
        let times: Option<Vec<f64>> = at.iter().map(|&step| episode.timestamp(step)).collect();
        let times = times.context("a step without a time")?;
        let mut observations: Vec<Observation> = at
            .iter()
            .map(|&step| Observation {
                state: episode.state(step),
                instruction: episode.instruction(step).map(str::to_string),
                ..Observation::default()
            })
            .collect();
        for camera in &self.robot.data_config.video_keys {
            let frames = self.dataset.frames(episode.index, camera, &times)?;
            for (observation, frame) in observations.iter_mut().zip(frames) {
                observation.images.insert(camera.clone(), frame);
            }
        }
        Ok(observations)
    }

    /// The joints of all keys side by side. `predicted` has one list of rows per key.
    fn joints(&self, episode: &Episode, steps: usize, predicted: &[Vec<Vec<f64>>]) -> Result<Vec<Joint>> {
        let mut joints = Vec::new();
        for (key, rows) in self.keys.iter().zip(predicted) {
            let recorded = rows_of(steps, |step| episode.action_of(key, step).map(<[f64]>::to_vec));
            let recorded = recorded.with_context(|| format!("action {key} ends before its episode"))?;
            let state = rows_of(steps, |step| episode.state_of(key, step));
            let width = recorded.first().map_or(0, Vec::len);
            if rows.iter().any(|row| row.len() != width) {
                bail!("action {key} has {width} values in the dataset, another number is predicted");
            }
            let state = state.filter(|rows| rows.iter().all(|row| row.len() == width));
            for place in 0..width {
                let (recorded, predicted) =
                    (column(&recorded, place), column(rows.get(..steps).unwrap_or(rows), place));
                let squares = recorded.iter().zip(&predicted).map(|(r, p)| (r - p).powi(2));
                joints.push(Joint {
                    name: format!("{key}[{place}]"),
                    mse: mean(squares),
                    state: state.as_deref().map(|rows| column(rows, place)),
                    recorded,
                    predicted,
                });
            }
        }
        Ok(joints)
    }
}

/// One row per step; nothing if a step has none.
fn rows_of(steps: usize, row: impl Fn(usize) -> Option<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    (0..steps).map(row).collect()
}

fn column(rows: &[Vec<f64>], place: usize) -> Vec<f64> {
    rows.iter().filter_map(|row| row.get(place).copied()).collect()
}

/// NaN of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_horizon_must_be_the_data_configs() {
        let config = DataConfig::builtin("so100").unwrap();
        assert_eq!(chosen(&[], &config).unwrap(), ["single_arm", "gripper"]);
        assert_eq!(chosen(&["gripper".into()], &config).unwrap(), ["gripper"]);
        let error = chosen(&["claw".into()], &config).unwrap_err().to_string();
        assert_eq!(error, "so100 has no action claw, it has single_arm, gripper");
        assert_eq!(horizon(None, 16).unwrap(), 16);
        assert_eq!(horizon(Some(4), 16).unwrap(), 4);
        assert!(horizon(Some(0), 16).is_err() && horizon(Some(17), 16).is_err());
    }
}
