//! Observation → model inputs: the host's half of a request, done before any device is asked for.
//!
//! Mirrors `Gr00tPolicy.get_action` up to `model.get_action` (GR00T N1.5, `gr00t/model/policy.py`,
//! `gr00t/model/transforms.py`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::ModelConfig;
use crate::embodiment::{DataConfig, Metadata};
use crate::image::{self, EvalTransform, Frame, MAX_SIDE, ResolutionPolicy};
use crate::noise::Noise;
use crate::observation::Observation;
use crate::prompt::{Prompt, PromptOptions, Tokenizer};
use crate::state::{StateTransform, UnknownKeys};
use crate::{Error, Result};

/// Longest token sequence that is accepted unless [`EncoderOptions::max_tokens`] says otherwise.
pub const DEFAULT_MAX_TOKENS: usize = 4096;

/// What the model reads, for one observation.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInputs {
    /// Normalised pixels `[views, channels, image_size, image_size]`, row-major.
    pub pixel_values: Vec<f32>,
    /// Number of camera views.
    pub views: usize,
    /// Token ids `[S]`, image tokens in place.
    pub input_ids: Vec<u32>,
    /// Normalised state, zero-padded to `max_state_dim`.
    pub state: Vec<f32>,
    /// Initial noise of the flow `[action_horizon, action_dim]`, row-major.
    pub noise: Vec<f32>,
    /// Slot of the category-specific weights.
    pub embodiment_id: usize,
}

/// How observations are read.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderOptions {
    /// What a frame of another size than the metadata's gets.
    pub resolution: ResolutionPolicy,
    /// Form of the instruction, and whether special tokens in it are live.
    pub prompt: PromptOptions,
    /// What a state key gets that nobody knows.
    pub unknown_keys: UnknownKeys,
    /// Longest token sequence, image tokens included.
    pub max_tokens: usize,
}

impl Default for EncoderOptions {
    /// As upstream's policy: strict image size, Python's list form of the instruction; special tokens inert.
    fn default() -> Self {
        Self {
            resolution: ResolutionPolicy::Strict,
            prompt: PromptOptions::default(),
            unknown_keys: UnknownKeys::default(),
            max_tokens: DEFAULT_MAX_TOKENS,
        }
    }
}

/// Model inputs and what was noticed on the way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Encoded {
    /// What the model reads.
    pub inputs: ModelInputs,
    /// The prompt that was used.
    pub prompt: Prompt,
    /// One line each.
    pub warnings: Vec<String>,
    /// Where the time went.
    pub timings: EncodeTimings,
}

/// Wall time of the encoder's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EncodeTimings {
    /// Crop, resize and normalisation of every view.
    pub images: Duration,
    /// Chat text and tokens.
    pub prompt: Duration,
    /// State and noise.
    pub state: Duration,
}

/// Turns observations of one embodiment into inputs of one model.
#[derive(Debug, Clone)]
pub struct Encoder {
    views: Vec<View>,
    eval: EvalTransform,
    channels: usize,
    state: StateTransform,
    tokenizer: Arc<Tokenizer>,
    tokens_per_view: usize,
    image_token: u32,
    vocab_size: usize,
    noise_shape: (usize, usize),
    embodiment_id: usize,
    load_warnings: Vec<String>,
    options: EncoderOptions,
}

#[derive(Debug, Clone)]
struct View {
    key: String,
    /// Width and height in the training data, where the metadata says so.
    resolution: Option<(usize, usize)>,
}

impl Encoder {
    /// Binds a data config to a model, the statistics and a tokenizer.
    ///
    /// # Errors
    /// [`Error::DataConfig`] or [`Error::Metadata`] if they don't fit together: unknown embodiment, other dimensions, cameras
    /// that the metadata lacks or whose frames have no possible size, another action horizon than the model's.
    pub fn new(
        model: &ModelConfig,
        data_config: &DataConfig,
        metadata: &Metadata,
        tokenizer: Arc<Tokenizer>,
        options: EncoderOptions,
    ) -> Result<Self> {
        let head = &model.gr00t.action_head_cfg;
        let (embodiment, warning) = metadata.embodiment(&data_config.embodiment)?;
        if data_config.action_horizon != head.action_horizon {
            return Err(Error::DataConfig {
                name: data_config.name.clone(),
                what: format!(
                    "action_horizon {}, but the model's is {}",
                    data_config.action_horizon, head.action_horizon
                ),
            });
        }
        let known = &embodiment.modalities.video;
        let missing: Vec<&str> =
            data_config.video_keys.iter().filter(|k| !known.contains_key(*k)).map(String::as_str).collect();
        if !missing.is_empty() {
            let present: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(Error::DataConfig {
                name: data_config.name.clone(),
                what: format!(
                    "cameras {} are not in the metadata, which has {}",
                    missing.join(", "),
                    present.join(", ")
                ),
            });
        }
        let sides = 1..=MAX_SIDE as u32;
        let impossible = data_config.video_keys.iter().find_map(|key| {
            let [width, height] = known.get(key)?.resolution;
            (!sides.contains(&width) || !sides.contains(&height)).then(|| {
                format!("camera {key} has frames of {width}x{height}, sides must be 1 to {MAX_SIDE}")
            })
        });
        if let Some(what) = impossible {
            return Err(Error::Metadata(what));
        }
        let views = data_config
            .video_keys
            .iter()
            .map(|key| View {
                key: key.clone(),
                resolution: known.get(key).map(|v| (v.resolution[0] as usize, v.resolution[1] as usize)),
            })
            .collect();
        Ok(Self {
            views,
            eval: EvalTransform::new(model.eagle.force_image_size),
            channels: model.eagle.vision_config.num_channels,
            state: StateTransform::new(data_config, embodiment, head.max_state_dim)?,
            tokenizer,
            tokens_per_view: model.eagle.tokens_per_view(),
            image_token: model.eagle.image_token_index,
            vocab_size: model.eagle.text_config.vocab_size,
            noise_shape: (head.action_horizon, head.action_dim),
            embodiment_id: data_config
                .embodiment
                .resolve_slot(data_config.embodiment_id, head.max_num_embodiments)?,
            load_warnings: warning.into_iter().collect(),
            options,
        })
    }

    /// Camera names, in the model's order.
    pub fn view_keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.views.iter().map(|v| v.key.as_str())
    }

    /// The state side.
    pub fn state(&self) -> &StateTransform {
        &self.state
    }

    /// Slot of the category-specific weights.
    pub fn embodiment_id(&self) -> usize {
        self.embodiment_id
    }

    /// Turns one observation into model inputs.
    ///
    /// # Errors
    /// [`Error::Observation`] that lists every problem of images, state, instruction and noise.
    pub fn encode(&self, observation: &Observation, noise: &Noise) -> Result<Encoded> {
        let mut problems = Problems::default();
        let mut warnings = self.load_warnings.clone();
        let mut timings = EncodeTimings::default();

        let started = Instant::now();
        let pixel_values = self.pixel_values(observation, &mut problems, &mut warnings);
        timings.images = started.elapsed();

        let started = Instant::now();
        let prompt = problems.keep(self.prompt(observation));
        timings.prompt = started.elapsed();

        let started = Instant::now();
        let state = problems.keep(self.state.apply_with(&observation.state, self.options.unknown_keys));
        let noise = problems.keep(noise.resolve(self.noise_shape.0, self.noise_shape.1));
        timings.state = started.elapsed();

        let (Some(prompt), Some(state), Some(noise), true) = (prompt, state, noise, problems.0.is_empty())
        else {
            return Err(Error::Observation(problems.0));
        };
        warnings.extend(state.warnings);
        let inputs = ModelInputs {
            pixel_values,
            views: self.views.len(),
            input_ids: prompt.input_ids.clone(),
            state: state.values,
            noise,
            embodiment_id: self.embodiment_id,
        };
        Ok(Encoded { inputs, prompt, warnings, timings })
    }

    fn pixel_values(
        &self,
        observation: &Observation,
        problems: &mut Problems,
        warnings: &mut Vec<String>,
    ) -> Vec<f32> {
        let per_view = self.channels * self.eval.image_size() * self.eval.image_size();
        let mut pixels = vec![0.0; per_view * self.views.len()];
        for (view, out) in self.views.iter().zip(pixels.chunks_exact_mut(per_view)) {
            match observation.images.get(&view.key) {
                None => problems.0.push(format!("image {} is missing", view.key)),
                Some(frame) => {
                    if let Err(e) = self.view_pixels(view, frame, out) {
                        problems.0.push(format!("image {}: {}", view.key, e.of_image()));
                    }
                }
            }
        }
        for key in observation.images.keys().filter(|k| !self.views.iter().any(|v| &v.key == *k)) {
            let wanted: Vec<&str> = self.view_keys().collect();
            let message = format!("image {key} is unknown, wanted {}", wanted.join(", "));
            match self.options.unknown_keys {
                UnknownKeys::Error => problems.0.push(message),
                UnknownKeys::Warn => warnings.push(format!("{message}, ignored")),
            }
        }
        pixels
    }

    fn view_pixels(&self, view: &View, frame: &Frame, out: &mut [f32]) -> Result<()> {
        let frame = image::fit(frame, view.resolution, self.options.resolution)?;
        self.eval.pixel_values(&frame, out)
    }

    fn prompt(&self, observation: &Observation) -> Result<Prompt> {
        let prompt = self.tokenizer.prompt(
            observation.instruction.as_deref(),
            self.views.len(),
            self.tokens_per_view,
            self.image_token,
            &self.options.prompt,
        )?;
        let length = prompt.input_ids.len();
        if length > self.options.max_tokens {
            return Err(Error::Prompt(format!(
                "{length} tokens, at most {} (of which {} are image tokens)",
                self.options.max_tokens,
                self.views.len() * self.tokens_per_view
            )));
        }
        if let Some(id) = prompt.input_ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            return Err(Error::Prompt(format!(
                "token {id} is outside the model's vocabulary of {}",
                self.vocab_size
            )));
        }
        Ok(prompt)
    }
}

/// Collects every problem, so that a user sees all of them at once.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Error::Observation(all)) => {
                self.0.extend(all);
                None
            }
            Err(one) => {
                self.0.push(one.to_string());
                None
            }
        }
    }
}
