//! The figures as text, and all of them for programs.

use gr00t_host::OneLine;
use serde::Serialize;

use super::open_loop::{Trajectory, mean};
use crate::say::say;

/// What was evaluated.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) dataset: String,
    pub(super) weights: String,
    pub(super) ran_on: String,
    pub(super) data_config: String,
    pub(super) statistics: String,
    pub(super) denoising_steps: usize,
    pub(super) action_horizon: usize,
    pub(super) trajectories: Vec<Trajectory>,
}

impl Report {
    /// What is evaluated, before it is.
    pub(super) fn print_head(&self, warning: Option<&str>) {
        say!("dataset      {}", OneLine(&self.dataset));
        say!("weights      {}", OneLine(&self.weights));
        say!("ran on       {}", self.ran_on);
        say!("data config  {}", OneLine(&self.data_config));
        say!("statistics   {}", OneLine(&self.statistics));
        say!(
            "steps        a prediction every {}, {} denoising steps",
            self.action_horizon,
            self.denoising_steps
        );
        if let Some(warning) = warning {
            say!("warning      {}", OneLine(warning));
        }
    }

    /// The mean of all episodes, each counting the same as upstream's do.
    pub(super) fn print_end(&self) {
        let all = mean(self.trajectories.iter().map(|trajectory| trajectory.mse));
        say!("\naverage MSE of {} episodes: {all:.6}", self.trajectories.len());
    }
}

/// One episode: a line per joint.
pub(super) fn print(trajectory: &Trajectory) {
    let Trajectory { episode, steps, inference_at, predict_ms, .. } = trajectory;
    say!("\nepisode {episode}: {}", OneLine(&trajectory.instruction));
    say!("{steps} steps, {} predictions, {predict_ms:.1} ms each (median)", inference_at.len());
    if trajectory.out_of_range > 0 {
        say!("{} action values are outside the statistics' range", trajectory.out_of_range);
    }
    say!("{:<28}{:>14}{:>14}{:>14}{:>14}", "joint", "MSE", "rms", "largest", "recorded span");
    for joint in &trajectory.joints {
        let differences = joint.recorded.iter().zip(&joint.predicted).map(|(r, p)| (r - p).abs());
        let (low, high) = joint
            .recorded
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (v.min(low), v.max(high)));
        say!(
            "{:<28}{:>14.6}{:>14.6}{:>14.6}{:>14.6}",
            OneLine(&joint.name).to_string(),
            joint.mse,
            joint.mse.sqrt(),
            differences.fold(0.0, f64::max),
            high - low
        );
    }
    say!("MSE of episode {episode}: {:.6}", trajectory.mse);
}
