//! Loading, stages and whole predictions of one model, with the host's share.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Observation, ObservationFile};
use gr00t_host::{ModelConfig, Weights};
use gr00t_model::{Gr00t, PackedCache, Policy, PredictOptions, RunOptions, Stage};
use tt_ops::Soft;

use super::limits::Limits;
use super::measure::{Clock, Time, Times};
use super::report::Report;
use super::results::Work;
use super::{BenchArgs, machine, scale};
use crate::device::DeviceArgs;
use crate::workspace;
use crate::{demo, full_size};

/// Predictions per point of a scaling curve: a part of those that are asked for, and no fewer than this.
const SCALE_REPS_SHARE: usize = 40;
const SCALE_REPS: usize = 2;

/// Loads what the results asked for need, and measures them.
pub(super) fn run(
    args: &BenchArgs,
    config: &ModelConfig,
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    let wants_any = |report: &Report, prefixes: &[&str]| prefixes.iter().any(|p| report.wants_some(p));
    if !wants_any(report, &["load/", "stage/", "predict/", "host/", "memory/", "scale/"]) {
        return Ok(());
    }
    let _alone = full_size::alone(config)?;
    let spec = WeightsSpec::Synthetic { seed: 0 };
    let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(config.clone()))?;
    let file = ObservationFile::read(workspace::root().join(demo::OBSERVATION))?;
    let observation = file.observation()?;
    let case = format!("{}/{}", args.device.policy, args.config);

    let cold = Clock::start();
    let mut policy = load(args, &args.device, &checkpoint, false)?;
    policy.predict(&observation)?;
    one(report, format!("load/cold/{case}"), cold.stop());
    if args.cache.is_some() {
        // fills the cache, so that the second load finds everything in it
        drop(policy);
        drop(load(args, &args.device, &checkpoint, true)?);
        let warm = Clock::start();
        policy = load(args, &args.device, &checkpoint, true)?;
        policy.predict(&observation)?;
        one(report, format!("load/packed_cache/{case}"), warm.stop());
    }
    if wants_any(report, &["stage/", "predict/", "host/", "memory/"]) {
        predictions(&policy, &observation, args.reps, &case, limits, report)?;
    }
    for (name, field) in [("resident", "VmRSS"), ("peak", "VmHWM")] {
        if let Some(mb) = machine::memory_mb(field) {
            report.values(format!("memory/{name}/{case}"), "MB", &[mb]);
        }
    }
    if report.wants_some("scale/") {
        let reps = (args.reps / SCALE_REPS_SHARE).max(SCALE_REPS);
        let inputs = policy.encoder().encode(&observation, &Noise::default())?.inputs;
        scale::views(&policy, &inputs, reps, &case, limits, report)?;
        let counts = scale::thread_counts(policy.model().device().threads());
        // one model in memory at a time
        drop(policy);
        for threads in counts {
            let name = format!("scale/{case}/{threads}thread");
            if report.wants(&name) {
                let device = DeviceArgs { threads: Some(threads), ..args.device.clone() };
                let policy = load(args, &device, &checkpoint, true)?;
                let times = Times::of(reps, || policy.predict(&observation).map(drop))?;
                report.times_with(threads, name, &times, None);
            }
        }
    }
    Ok(())
}

fn load(
    args: &BenchArgs,
    device: &DeviceArgs,
    checkpoint: &Checkpoint,
    cached: bool,
) -> Result<Policy<Soft>> {
    let data_config = DataConfig::builtin("fourier_gr1_arms_only")?;
    let cache = match args.cache.as_deref().filter(|_| cached) {
        Some(root) => Some(PackedCache::new(checkpoint, root).map_err(|e| anyhow!("{e}"))?),
        None => None,
    };
    let weights = Weights::new(Arc::clone(checkpoint.source()));
    let model = Gr00t::builder(checkpoint.config().clone(), weights, device.open()?)
        .dtype_policy(device.policy)
        .packed_cache(cache)
        .build()
        .map_err(|e| anyhow!("{e}"))?;
    let metadata = synthetic_metadata(&data_config)?;
    let policy = Policy::on(Arc::new(model)).metadata(metadata).data_config(data_config).build();
    policy.map_err(|e| anyhow!("{e}"))
}

fn one(report: &mut Report, name: String, time: Time) {
    let mut times = Times::default();
    times.push(time);
    report.times(name, &times, None);
}

/// Predicts `reps` times after one that is not counted.
fn predictions(
    policy: &Policy<Soft>,
    observation: &Observation,
    reps: usize,
    case: &str,
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    let options = PredictOptions::default();
    policy.predict(observation)?;
    let (mut whole, mut encode, mut decode) = (Times::default(), Times::default(), Times::default());
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
        let host = timings.encode.images + timings.encode.prompt + timings.encode.state;
        encode.push(Time { wall: host.as_secs_f64() * 1e3, cpu: 0.0 });
        decode.push(Time { wall: timings.decode.as_secs_f64() * 1e3, cpu: 0.0 });
    }
    let inputs = policy.encoder().encode(observation, &Noise::default())?.inputs;
    let (views, tokens) = (inputs.views, inputs.input_ids.len());
    let mut whole_work = Work::default();
    let profile = policy.model().profile(&inputs, &RunOptions::default()).map_err(|e| anyhow!("{e}"))?;
    for (stage, ops) in &profile {
        let work = limits.of_ops(ops);
        whole_work = whole_work.and(work);
        if let Some((_, times)) = stages.iter().find(|(known, _)| known == stage) {
            report.times_in(&whole, format!("stage/{stage}/{case}/{views}view/s{tokens}"), times, work);
        }
    }
    report.times(format!("predict/{case}/{views}view/s{tokens}"), &whole, Some(whole_work));
    report.times(format!("host/encode/{case}"), &encode, None);
    report.times(format!("host/decode/{case}"), &decode, None);
    Ok(())
}
