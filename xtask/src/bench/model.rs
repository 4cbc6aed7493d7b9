//! Loading, stages and whole predictions of one model, with the host's share.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Observation, ObservationFile};
use gr00t_host::{ModelConfig, Weights};
use gr00t_model::{Gr00t, PackedCache, Policy};
use tt_ops::{Device, Metal, Soft};

use super::limits::Limits;
use super::measure::{Clock, Time, Times};
use super::report::Report;
use super::{BenchArgs, machine, predictions, scale};
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
    if !wants_any(report, &OF_A_MODEL) && !report.wants_some("scale/") {
        return Ok(());
    }
    let _alone = full_size::alone(config)?;
    let subject = Subject::open(args, config)?;
    let open = || args.device.open();
    let policy = subject.measure(args, Some(limits), report, open)?;
    let Subject { checkpoint, observation, case } = &subject;
    if report.wants_some("scale/") {
        let reps = (args.reps / SCALE_REPS_SHARE).max(SCALE_REPS);
        let inputs = policy.encoder().encode(observation, &Noise::default())?.inputs;
        scale::views(&policy, &inputs, reps, case, limits, report)?;
        let counts = scale::thread_counts(policy.model().device().threads());
        // one model in memory at a time
        drop(policy);
        for threads in counts {
            let name = format!("scale/{case}/{threads}thread");
            if report.wants(&name) {
                let device = DeviceArgs { threads: Some(threads), ..args.device.clone() };
                let policy: Policy<Soft> = load(args, device.open()?, checkpoint, true)?;
                let times = Times::of(reps, || policy.predict(observation).map(drop))?;
                report.times_with(threads, name, &times, None);
            }
        }
    }
    Ok(())
}

fn wants_any(report: &Report, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| report.wants_some(prefix))
}

const OF_A_MODEL: [&str; 6] = ["load/", "device/", "stage/", "predict/", "host/", "memory/"];

/// Is something asked for that is measured of a card?
pub(super) fn is_wanted_of_a_card(report: &Report) -> bool {
    wants_any(report, &OF_A_MODEL)
}

/// The same of a card, whose limits and whose ops by themselves are not known here.
pub(super) fn run_on_card(
    args: &BenchArgs,
    config: &ModelConfig,
    card: &Metal,
    report: &mut Report,
) -> Result<()> {
    let _alone = full_size::alone(config)?;
    let subject = Subject::open(args, config)?;
    subject.measure(args, None, report, || Ok(card.clone())).map(drop)
}

/// What predicts, and of what.
struct Subject {
    checkpoint: Checkpoint,
    observation: Observation,
    /// The part of the names that says what was measured.
    case: String,
}

impl Subject {
    fn open(args: &BenchArgs, config: &ModelConfig) -> Result<Self> {
        let spec = WeightsSpec::Synthetic { seed: 0 };
        let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(config.clone()))?;
        let file = ObservationFile::read(workspace::root().join(demo::OBSERVATION))?;
        let observation = file.observation()?;
        Ok(Self { checkpoint, observation, case: format!("{}/{}", args.device.policy, args.config) })
    }

    /// Times of loading, from nothing and from a cache, then of predictions, and the memory that they take.
    fn measure<D: Device>(
        &self,
        args: &BenchArgs,
        limits: Option<&Limits>,
        report: &mut Report,
        open: impl Fn() -> Result<D>,
    ) -> Result<Policy<D>> {
        let Self { checkpoint, observation, case } = self;
        let cold = Clock::start();
        let mut policy = load(args, open()?, checkpoint, false)?;
        policy.predict(observation)?;
        one(report, format!("load/cold/{case}"), cold.stop());
        if args.cache.is_some() {
            // fills the cache, so that the second load finds everything in it
            drop(policy);
            drop(load(args, open()?, checkpoint, true)?);
            let warm = Clock::start();
            policy = load(args, open()?, checkpoint, true)?;
            policy.predict(observation)?;
            one(report, format!("load/packed_cache/{case}"), warm.stop());
        }
        if wants_any(report, &["device/", "stage/", "predict/", "host/", "memory/"]) {
            predictions::run(&policy, observation, args.reps, case, limits, report)?;
        }
        for (name, field) in [("resident", "VmRSS"), ("peak", "VmHWM")] {
            if let Some(mb) = machine::memory_mb(field) {
                report.values(format!("memory/{name}/{case}"), "MB", &[mb]);
            }
        }
        Ok(policy)
    }
}

fn load<D: Device>(args: &BenchArgs, device: D, checkpoint: &Checkpoint, cached: bool) -> Result<Policy<D>> {
    let data_config = DataConfig::builtin("fourier_gr1_arms_only")?;
    let cache = match args.cache.as_deref().filter(|_| cached) {
        Some(root) => Some(PackedCache::new(checkpoint, root).map_err(|e| anyhow!("{e}"))?),
        None => None,
    };
    let weights = Weights::new(Arc::clone(checkpoint.source()));
    let model = Gr00t::builder(checkpoint.config().clone(), weights, device)
        .dtype_policy(args.device.policy)
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
