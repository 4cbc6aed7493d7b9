//! Predictions: as a whole, writing the inputs, each stage's replay, reading the actions, and the host's share.

use std::time::Duration;

use anyhow::{Result, anyhow};
use gr00t_host::ModelInputs;
use gr00t_host::noise::Noise;
use gr00t_host::observation::Observation;
use gr00t_model::{Policy, PredictOptions, RunOptions, Stage};
use tt_ops::Device;

use super::limits::Limits;
use super::measure::{Clock, Time, Times};
use super::report::Report;
use super::results::Work;

/// Predicts `reps` times after one that is not counted.
pub(super) fn run<D: Device>(
    policy: &Policy<D>,
    observation: &Observation,
    reps: usize,
    case: &str,
    limits: Option<&Limits>,
    report: &mut Report,
) -> Result<()> {
    let options = PredictOptions::default();
    policy.predict(observation)?;
    let mut whole = Times::default();
    let (mut encode, mut decode) = (Times::default(), Times::default());
    let (mut write, mut read) = (Times::default(), Times::default());
    let mut stages: Vec<(Stage, Times)> = Vec::new();
    for _ in 0..reps.max(1) {
        let clock = Clock::start();
        let timings = policy.predict_with(observation, &options)?.timings;
        let time = clock.stop();
        whole.push(time);
        // A stage's part of the CPU time is taken to be its part of the wall time.
        let cpu_share = time.cpu / time.wall.max(f64::MIN_POSITIVE);
        for stage in &timings.model.stages {
            let wall = stage.elapsed.as_secs_f64() * 1e3;
            let time = Time { wall, cpu: wall * cpu_share };
            if let Some((_, times)) = stages.iter_mut().find(|(known, _)| *known == stage.stage) {
                times.push(time);
            } else {
                let mut times = Times::default();
                times.push(time);
                stages.push((stage.stage, times));
            }
        }
        write.push(on_the_wall(timings.model.write));
        read.push(on_the_wall(timings.model.read));
        let host = timings.encode.images + timings.encode.prompt + timings.encode.state;
        encode.push(on_the_wall(host));
        decode.push(on_the_wall(timings.decode));
    }
    let inputs = policy.encoder().encode(observation, &Noise::default())?.inputs;
    let (views, tokens) = (inputs.views, inputs.input_ids.len());
    let shape = format!("{views}view/s{tokens}");
    let works = limits.map(|limits| works(policy, &inputs, limits)).transpose()?;
    report.times(format!("device/write/{case}/{shape}"), &write, None);
    for (stage, times) in &stages {
        let work = works.iter().flatten().find(|(known, _)| known == stage).map(|(_, work)| *work);
        report.times_in(&whole, format!("stage/{stage}/{case}/{shape}"), times, work);
    }
    report.times(format!("device/read/{case}/{shape}"), &read, None);
    let whole_work = works.map(|works| works.iter().map(|(_, work)| *work).fold(Work::default(), Work::and));
    report.times(format!("predict/{case}/{shape}"), &whole, whole_work);
    report.times(format!("host/encode/{case}"), &encode, None);
    report.times(format!("host/decode/{case}"), &decode, None);
    Ok(())
}

/// What each stage has to do at least.
fn works<D: Device>(policy: &Policy<D>, inputs: &ModelInputs, limits: &Limits) -> Result<Vec<(Stage, Work)>> {
    let profile = policy.model().profile(inputs, &RunOptions::default()).map_err(|e| anyhow!("{e}"))?;
    Ok(profile.iter().map(|(stage, ops)| (*stage, limits.of_ops(ops))).collect())
}

/// Too short for the kernel's clock of CPU time.
fn on_the_wall(time: Duration) -> Time {
    Time { wall: time.as_secs_f64() * 1e3, cpu: 0.0 }
}
