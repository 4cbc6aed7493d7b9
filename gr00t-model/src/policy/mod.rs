//! [`Policy`]: observations in, action chunks out. What other crates embed.

mod builder;
mod prediction;

use std::sync::Arc;
use std::time::Instant;

use gr00t_host::decode::Decoder;
use gr00t_host::encode::{Encoded, Encoder};
use gr00t_host::noise::Noise;
use gr00t_host::{ModelInputs, Observation};
use tt_ops::Device;

use crate::error::Result;
use crate::model::{Gr00t, NormalizedActions, RunOptions};
use crate::observer::Observer;
use crate::trace_cache::TraceKey;

pub use builder::PolicyBuilder;
pub use prediction::{PolicyTimings, PredictOptions, Prediction};

/// GR00T N1.5 bound to one robot: its cameras, state keys, action keys and statistics.
///
/// Encoding and decoding are done before and after the device is asked for, so that requests from several threads
/// overlap. Several policies, for several robots, can share one model: see [`Policy::on`].
///
/// ```
/// use gr00t_host::embodiment::DataConfig;
/// use gr00t_host::image::Frame;
/// use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
/// use gr00t_host::observation::{Observation, Values};
/// use gr00t_host::ModelConfig;
/// use gr00t_model::{DtypePolicy, Policy};
/// use tt_ops::Soft;
///
/// // synthetic weights of the mini model; `WeightsSpec::Path` or `WeightsSpec::Hub` for real ones
/// let spec = WeightsSpec::Synthetic { seed: 3 };
/// let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini()))?;
/// let policy = Policy::builder(&checkpoint, Soft::open()?)
///     .data_config(DataConfig::builtin("fourier_gr1_arms_only")?)
///     .dtype_policy(DtypePolicy::Bf16)
///     .build()?;
///
/// let mut observation = Observation { instruction: Some("pick the pear".into()), ..Observation::default() };
/// observation.images.insert("ego_view".into(), Frame::new(256, 256, vec![90; 256 * 256 * 3])?);
/// for (key, dim) in [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6)] {
///     observation.state.insert(key.into(), Values::F64(vec![0.1; dim]));
/// }
/// let prediction = policy.predict(&observation)?;
/// assert_eq!(prediction.chunk.horizon, 16);
/// assert_eq!(prediction.chunk.group("left_arm").map(|group| group.dim), Some(7));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policy<D: Device> {
    model: Arc<Gr00t<D>>,
    encoder: Encoder,
    decoder: Decoder,
    noise: Noise,
}

impl<D: Device> Policy<D> {
    /// The model.
    pub fn model(&self) -> &Arc<Gr00t<D>> {
        &self.model
    }

    /// Observation → model inputs.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Model output → action chunk.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The next actions, with the policy's noise and number of steps.
    ///
    /// # Errors
    /// [`gr00t_host::Error::Observation`] with everything that is wrong with the observation; what the device reports.
    pub fn predict(&self, observation: &Observation) -> Result<Prediction> {
        self.predict_with(observation, &PredictOptions::default())
    }

    /// [`predict`](Self::predict) with options of its own.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); [`ModelError::Cancelled`](crate::ModelError::Cancelled).
    pub fn predict_with(&self, observation: &Observation, options: &PredictOptions) -> Result<Prediction> {
        let started = Instant::now();
        let encoded = self.encode(observation, options)?;
        let actions = self.model.predict(&encoded.inputs, &options.run)?;
        self.decode(encoded, actions, started)
    }

    /// [`predict_with`](Self::predict_with) that shows every stage tensor. The actions are the same bytes.
    ///
    /// # Errors
    /// As [`predict_with`](Self::predict_with).
    pub fn observe(
        &self,
        observation: &Observation,
        options: &PredictOptions,
        observer: &mut dyn Observer,
    ) -> Result<Prediction> {
        let started = Instant::now();
        let encoded = self.encode(observation, options)?;
        let actions = self.model.observe(&encoded.inputs, &options.run, observer)?;
        self.decode(encoded, actions, started)
    }

    /// The next actions of several robots at once, in their order; each is the same bytes as alone.
    ///
    /// # Errors
    /// As [`predict_with`](Self::predict_with), of the first observation with an error.
    pub fn predict_batch(
        &self,
        observations: &[Observation],
        options: &PredictOptions,
    ) -> Result<Vec<Prediction>> {
        let started = Instant::now();
        let encoded: Vec<Encoded> = observations
            .iter()
            .map(|observation| self.encode(observation, options))
            .collect::<Result<_>>()?;
        let inputs: Vec<&ModelInputs> = encoded.iter().map(|encoded| &encoded.inputs).collect();
        let actions = self.model.predict_batch(&inputs, &options.run)?;
        encoded.into_iter().zip(actions).map(|(e, a)| self.decode(e, a, started)).collect()
    }

    /// Normalised actions of inputs that are encoded already.
    ///
    /// # Errors
    /// As [`Gr00t::predict`].
    pub fn predict_normalized(
        &self,
        inputs: &ModelInputs,
        options: &RunOptions,
    ) -> Result<NormalizedActions> {
        self.model.predict(inputs, options)
    }

    /// Captures what observations like this one need, so that the first of them is not slower.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn prepare(&self, observation: &Observation, options: &PredictOptions) -> Result<TraceKey> {
        self.model.prepare(&self.encode(observation, options)?.inputs, &options.run)
    }

    fn encode(&self, observation: &Observation, options: &PredictOptions) -> Result<Encoded> {
        Ok(self.encoder.encode(observation, options.noise.as_ref().unwrap_or(&self.noise))?)
    }

    fn decode(&self, encoded: Encoded, actions: NormalizedActions, started: Instant) -> Result<Prediction> {
        let decoding = Instant::now();
        let chunk = self.decoder.decode(&actions.action_pred)?;
        let timings = PolicyTimings {
            encode: encoded.timings,
            model: actions.timings,
            decode: decoding.elapsed(),
            total: started.elapsed(),
        };
        let Encoded { inputs, prompt, warnings, .. } = encoded;
        let (action_pred, noise) = (actions.action_pred, inputs.noise);
        Ok(Prediction { chunk, action_pred, noise, prompt, warnings, timings })
    }
}
