//! [`Gr00t`]: the whole model on a device, model inputs in, normalised actions out.

mod builder;
mod check;
mod options;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gr00t_host::{ModelConfig, ModelInputs, Weights};
use tt_ops::{CaptureOptions, CapturedOps, Device, OpTime};

use crate::dtype_policy::DtypePolicy;
use crate::error::{ModelError, Result};
use crate::llm::SequenceLayout;
use crate::network::Network;
use crate::observer::Observer;
use crate::packed_cache::PackedCache;
use crate::pipeline::{InputValues, Pipeline};
use crate::stages::{ModelTimings, Stage};
use crate::trace_cache::{TraceCache, TraceCacheStats, TraceKey};
use crate::vision::cut_patches;
use crate::weights::StructureReport;

pub use builder::{Gr00tBuilder, LoadProgress};
pub use options::{MAX_DENOISING_STEPS, ModelOptions, RunOptions};

/// GR00T N1.5 on a device: weights in the dtype policy's types, stages captured once per geometry and then only replayed.
///
/// `Send + Sync`: requests from several threads take turns on the device. Equal inputs give equal bytes, whatever ran
/// before, whatever else is in the batch, and however many threads the device has.
///
/// ```
/// use std::sync::Arc;
/// use gr00t_host::checkpoint::Procedural;
/// use gr00t_host::{ModelConfig, ModelInputs, Weights};
/// use gr00t_model::{DtypePolicy, Gr00t, RunOptions};
/// use tt_ops::Soft;
///
/// let config = ModelConfig::mini();
/// let weights = Weights::new(Arc::new(Procedural::new(&config, 3)));
/// let model = Gr00t::builder(config.clone(), weights, Soft::open()?)
///     .dtype_policy(DtypePolicy::Bf16)
///     .embodiments([24])
///     .build()?;
///
/// let mut input_ids = vec![config.eagle.image_token_index; config.eagle.tokens_per_view()];
/// input_ids.extend([1, 2, 3]);
/// let inputs = ModelInputs {
///     pixel_values: vec![0.5; 3 * 224 * 224],
///     views: 1,
///     input_ids,
///     state: vec![0.0; 64],
///     noise: vec![1.0; 16 * 32],
///     embodiment_id: 24,
/// };
/// let output = model.predict(&inputs, &RunOptions::default())?;
/// assert_eq!(output.action_pred.len(), 16 * 32);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gr00t<D: Device> {
    network: Network<D>,
    options: ModelOptions,
    traces: Mutex<TraceCache<Pipeline<D>>>,
}

/// Normalised actions of one observation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NormalizedActions {
    /// `[horizon, action_dim]`, row-major; not clipped; finite.
    pub action_pred: Vec<f32>,
    /// Time steps.
    pub horizon: usize,
    /// Where the time went, of the whole batch.
    pub timings: ModelTimings,
}

impl<D: Device> Gr00t<D> {
    /// A model of geometry `config` whose tensors are below `weights` (the checkpoint's root), on `device`.
    pub fn builder(config: ModelConfig, weights: Weights, device: D) -> Gr00tBuilder<D> {
        Gr00tBuilder::new(config, weights, device)
    }

    pub(super) fn from_network(network: Network<D>, options: ModelOptions) -> Self {
        let traces = Mutex::new(TraceCache::new(options.trace_cap));
        Self { network, options, traces }
    }

    /// The geometry.
    pub fn config(&self) -> &ModelConfig {
        &self.network.config
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.network.device
    }

    /// The dtype policy that runs.
    pub fn dtype_policy(&self) -> DtypePolicy {
        self.network.policy
    }

    /// The options that it was built with.
    pub fn options(&self) -> &ModelOptions {
        &self.options
    }

    /// Loaded slots of the category-specific weights.
    pub fn embodiments(&self) -> Vec<usize> {
        self.network.embodiments()
    }

    /// Loads another slot of the category-specific weights; nothing happens if it is loaded.
    ///
    /// # Errors
    /// A slot that does not exist, weights that cannot be read.
    pub fn load_embodiment(&self, slot: usize) -> Result<()> {
        self.network.load_embodiment(slot)
    }

    /// Device tensors, elements and bytes per part, role and data type.
    pub fn structure(&self) -> StructureReport {
        self.network.ledger.report()
    }

    /// Where packed weights are kept, if anywhere.
    pub fn packed_cache(&self) -> Option<&PackedCache> {
        self.network.ledger.cache()
    }

    /// What the trace cache did so far.
    pub fn trace_stats(&self) -> TraceCacheStats {
        self.traces().stats()
    }

    /// Captured geometries, least recently used first.
    pub fn trace_keys(&self) -> Vec<TraceKey> {
        self.traces().keys().cloned().collect()
    }

    /// Normalised actions of one observation.
    ///
    /// The horizon is that of the noise: any up to the rows of the position table.
    ///
    /// # Errors
    /// [`ModelError::Inputs`] with everything that does not fit, [`ModelError::Embodiment`] if the slot is not loaded,
    /// [`ModelError::Cancelled`], [`ModelError::NotFinite`].
    pub fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions> {
        self.run(&[inputs], options, None)?.pop().ok_or(NO_RESULT)
    }

    /// [`predict`](Self::predict) that shows every stage tensor. The actions are the same bytes.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn observe(
        &self,
        inputs: &ModelInputs,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Result<NormalizedActions> {
        self.run(&[inputs], options, Some(observer))?.pop().ok_or(NO_RESULT)
    }

    /// Normalised actions of several observations, in their order. Observations of equal geometry (views, prompt layout,
    /// sequence length after padding, horizon, embodiment) share replays; each result is the same bytes as alone.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), of the first observation with an error; what is wrong with any input is found before anything runs.
    pub fn predict_batch(
        &self,
        inputs: &[&ModelInputs],
        options: &RunOptions,
    ) -> Result<Vec<NormalizedActions>> {
        for inputs in inputs {
            self.check(inputs)?;
        }
        let mut groups: Vec<(TraceKey, Vec<usize>)> = Vec::new();
        for (index, inputs) in inputs.iter().enumerate() {
            let key = self.key(inputs, options)?;
            match groups.iter_mut().find(|(k, members)| *k == key && members.len() < self.options.max_batch) {
                Some((_, members)) => members.push(index),
                None => groups.push((key, vec![index])),
            }
        }
        let mut results: Vec<Option<NormalizedActions>> = vec![None; inputs.len()];
        for (_, members) in groups {
            let group: Vec<&ModelInputs> = members.iter().filter_map(|&i| inputs.get(i).copied()).collect();
            for (index, output) in members.into_iter().zip(self.run(&group, options, None)?) {
                if let Some(result) = results.get_mut(index) {
                    *result = Some(output);
                }
            }
        }
        results.into_iter().map(|result| result.ok_or(NO_RESULT)).collect()
    }

    /// Captures what predictions like this one need, so that the first of them is not slower.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn prepare(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<TraceKey> {
        self.check(inputs)?;
        let key = self.key(inputs, options)?;
        self.traces().get_or_make(&key, || self.capture(&key, CaptureOptions::default()))?;
        Ok(key)
    }

    /// How long each op of each stage takes for these inputs.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn profile(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<Vec<(Stage, Vec<OpTime>)>> {
        self.check(inputs)?;
        let key = self.key(inputs, options)?;
        let values = self.values(&[inputs], &key)?;
        self.traces().get_or_make(&key, || self.capture(&key, CaptureOptions::default()))?.profile(&values)
    }

    /// The ops of each stage's trace for these inputs, in the order in which they run.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn captured_ops(
        &self,
        inputs: &ModelInputs,
        options: &RunOptions,
    ) -> Result<Vec<(Stage, CapturedOps)>> {
        self.check(inputs)?;
        let key = self.key(inputs, options)?;
        let mut traces = self.traces();
        let pipeline = traces.get_or_make(&key, || self.capture(&key, CaptureOptions::default()))?;
        Ok(pipeline.traces().map(|(stage, trace)| (stage, trace.ops().clone())).collect())
    }

    /// A pipeline of its own for these inputs, which are written into it.
    pub(crate) fn prepared(
        &self,
        inputs: &ModelInputs,
        run: &RunOptions,
        options: CaptureOptions,
    ) -> Result<Pipeline<D>> {
        self.check(inputs)?;
        let key = self.key(inputs, run)?;
        let pipeline = self.capture(&key, options)?;
        pipeline.write(&self.values(&[inputs], &key)?)?;
        Ok(pipeline)
    }

    fn traces(&self) -> MutexGuard<'_, TraceCache<Pipeline<D>>> {
        // inputs are written as a whole before each replay, so that a panic elsewhere leaves nothing behind
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<TraceKey> {
        let (bucket, config) = (self.options.sequence_bucket, &self.network.config);
        let ids = &inputs.input_ids;
        Ok(TraceKey {
            layout: SequenceLayout::new(
                ids,
                config.eagle.image_token_index,
                ids.len().next_multiple_of(bucket),
            ),
            views: inputs.views,
            batch: 1,
            steps: options.checked_steps(self.options.denoising_steps)?,
            horizon: inputs.noise.len() / config.gr00t.action_dim,
            policy: self.network.policy,
            embodiment: inputs.embodiment_id,
            padded: bucket > 1,
            observed: false,
        })
    }

    fn capture(&self, key: &TraceKey, options: CaptureOptions) -> Result<Pipeline<D>> {
        let conditioning = self.network.conditioning(key.embodiment, key.steps)?;
        Pipeline::capture(&self.network, &conditioning, key, self.options.trace_layout, options)
    }

    /// What is written for observations of one geometry.
    fn values(&self, inputs: &[&ModelInputs], key: &TraceKey) -> Result<InputValues> {
        let eagle = &self.network.config.eagle;
        let mut values = InputValues::default();
        for inputs in inputs {
            let ids = &inputs.input_ids;
            cut_patches(&eagle.vision_config, &inputs.pixel_values, &mut values.patches);
            let text = ids.iter().copied().filter(|&id| id != eagle.image_token_index);
            // padding may hold any token: nothing sees it
            let padding = std::iter::repeat_n(0, key.bucket() - ids.len());
            self.network.embedding.append(text.chain(padding), &mut values.text)?;
            values.lengths.push(ids.len());
            values.state.extend_from_slice(&inputs.state);
            values.noise.extend_from_slice(&inputs.noise);
        }
        Ok(values)
    }

    /// Runs observations of one geometry.
    fn run(
        &self,
        inputs: &[&ModelInputs],
        options: &RunOptions,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<NormalizedActions>> {
        let Some(first) = inputs.first() else { return Ok(Vec::new()) };
        for inputs in inputs {
            self.check(inputs)?;
        }
        let mut key = self.key(first, options)?;
        (key.batch, key.observed) = (inputs.len(), observer.is_some());
        let values = self.values(inputs, &key)?;

        let started = Instant::now();
        let mut timings = ModelTimings::default();
        let mut traces = self.traces();
        let first_stage = self.options.trace_layout.stages().first().copied();
        options.cancel().check(first_stage.unwrap_or(Stage::Vision))?;
        let pipeline = traces.get_or_make(&key, || self.capture(&key, CaptureOptions::default()))?;
        timings.prepare = started.elapsed();
        let actions = pipeline.run(&values, options.cancel(), observer, &mut timings)?;
        drop(traces);

        let count = actions.iter().filter(|action| !action.is_finite()).count();
        if count > 0 {
            return Err(ModelError::NotFinite { count, elements: actions.len() });
        }
        let horizon = key.horizon;
        let rows = actions.chunks_exact(horizon * self.network.config.gr00t.action_dim);
        Ok(rows
            .map(|row| NormalizedActions { action_pred: row.to_vec(), horizon, timings: timings.clone() })
            .collect())
    }
}

/// A replay that gave fewer rows than it was asked for.
const NO_RESULT: ModelError = ModelError::Internal("no result for an observation");

/// Wall time of a whole call, for callers that want one number.
impl NormalizedActions {
    /// Device time: writing, all stages, reading.
    pub fn device_time(&self) -> Duration {
        self.timings.write + self.timings.stages_total() + self.timings.read
    }
}
