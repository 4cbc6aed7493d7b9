//! A case from its raw observation: image, state and instruction in, physical actions out.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::action::{ActionGroup, ActionOptions};
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{EmbodimentMetadata, Metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Expected, ObservationFile, StateDtype};
use gr00t_host::prompt::{PromptOptions, Tokenizer};
use gr00t_host::state::UnknownKeys;
use gr00t_host::{ModelConfig, ModelInputs};

use super::figures::{Exactness, Gate, Grading, judge, judge_equal};
use super::host::transcendental;
use super::report::{Row, Verdict};

/// Largest difference of a physical action, as a share of the key's range in the statistics.
const ACTION_SHARE_OF_RANGE: f64 = 1e-4;

/// An observation, encoded, and what is expected of it.
#[derive(Debug)]
pub(super) struct Check {
    expected: Expected,
    inputs: ModelInputs,
    decoder: Decoder,
    statistics: EmbodimentMetadata,
    state_exactness: Exactness,
    file_name: String,
}

impl Check {
    /// Reads the observation and encodes it with the case's noise, as upstream does.
    ///
    /// # Errors
    /// If it cannot be read or encoded, or expects nothing.
    pub(super) fn read(path: &Path, config: &ModelConfig, case: &ModelInputs) -> Result<Self> {
        let file = ObservationFile::read(path)?;
        let shown = || path.display().to_string();
        let expected = file.expected.clone().context("no \"expected\"").with_context(shown)?;
        let mut data_config = file.data_config()?.context("no \"data_config\"").with_context(shown)?;
        data_config.action_horizon = config.gr00t.action_horizon;
        let metadata = file.metadata.as_deref().context("no \"metadata\"").with_context(shown)?;
        let metadata = Metadata::from_file(file.resolve(metadata))?;
        let options = EncoderOptions {
            prompt: PromptOptions { allow_special: true, ..PromptOptions::default() },
            unknown_keys: UnknownKeys::Warn,
            ..EncoderOptions::default()
        };
        let tokenizer = Arc::new(Tokenizer::qwen2());
        let encoder = Encoder::new(config, &data_config, &metadata, tokenizer, options)?;
        let encoded = encoder.encode(&file.observation()?, &Noise::Explicit(case.noise.clone()))?;
        Ok(Self {
            expected,
            inputs: encoded.inputs,
            decoder: Decoder::new(config, &data_config, &metadata, ActionOptions::default())?,
            statistics: metadata.embodiment(&data_config.embodiment)?.0.clone(),
            // Double precision hides the last places of its sines in the rounding to f32.
            state_exactness: match (transcendental(&data_config.state_keys), file.state_dtype) {
                (true, StateDtype::Float32) => Exactness::LibmF32,
                _ => Exactness::Equal,
            },
            file_name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        })
    }

    /// What the observation is encoded to.
    pub(super) fn inputs(&self) -> &ModelInputs {
        &self.inputs
    }

    /// Whether the observation is encoded to the case's own inputs, bit for bit.
    pub(super) fn encodes_to(&self, case: &ModelInputs) -> bool {
        self.inputs == *case
    }

    /// One row per input: equality with the case's own.
    pub(super) fn encode_rows(&self, case: &ModelInputs) -> Vec<Row> {
        let inputs = &self.inputs;
        let mut rows = vec![
            equal("encode pixel values", &inputs.pixel_values, &case.pixel_values),
            equal("encode token ids", &inputs.input_ids, &case.input_ids),
            judge_equal("encode state", &widened(&inputs.state), &widened(&case.state), self.state_exactness),
            equal("encode embodiment slot", &[inputs.embodiment_id], &[case.embodiment_id]),
        ];
        rows.push(match self.expected.prompt_tokens {
            Some(expected) => equal("encode prompt tokens", &[inputs.input_ids.len()], &[expected]),
            None => Row::fail("encode prompt tokens", format!("not in {}", self.file_name)),
        });
        rows
    }

    /// One row per action key: physical actions of the model's output.
    pub(super) fn action_rows(&self, action_pred: &[f32], grading: Grading) -> Vec<Row> {
        let chunk = match self.decoder.decode(action_pred) {
            Ok(chunk) => chunk,
            Err(error) => return vec![Row::fail("actions", error.to_string())],
        };
        if self.expected.actions.is_empty() {
            return vec![Row::fail("actions", format!("none expected in {}", self.file_name))];
        }
        let mut rows = Vec::new();
        for (key, expected) in &self.expected.actions {
            let name = format!("actions {key}");
            rows.push(match chunk.group(key) {
                Some(group) => self.action_row(&name, group, chunk.horizon, expected, grading),
                None => Row::fail(name, "not produced"),
            });
        }
        for group in chunk.groups.iter().filter(|g| !self.expected.actions.contains_key(&g.key)) {
            rows.push(Row::fail(format!("actions {}", group.key), "produced, not expected"));
        }
        rows
    }

    fn action_row(
        &self,
        name: &str,
        group: &ActionGroup,
        horizon: usize,
        expected: &[Vec<f64>],
        grading: Grading,
    ) -> Row {
        if expected.len() != horizon || expected.iter().any(|row| row.len() != group.dim) {
            return Row::fail(name, format!("[{horizon}, {}] produced, another shape expected", group.dim));
        }
        let expected: Vec<f32> = expected.concat().into_iter().map(|v| v as f32).collect();
        if expected.iter().any(|v| !v.is_finite()) {
            return Row::fail(name, "an expected value is not finite");
        }
        // A key without any range, such as a hand that never moved, must come out as it is.
        let most = ACTION_SHARE_OF_RANGE * self.range(&group.key).unwrap_or(0.0);
        let gate = match grading {
            Grading::Reference => Gate::MaxAbsAlone(most),
            Grading::Device { .. } => Gate::Shown,
        };
        judge(name, &group.values, &expected, gate)
    }

    /// The widest `max - min` of the key's dimensions.
    fn range(&self, key: &str) -> Option<f64> {
        let statistics = self.statistics.statistics.action.get(key)?;
        statistics.max.iter().zip(&statistics.min).map(|(max, min)| max - min).reduce(f64::max)
    }
}

fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

fn equal<T: PartialEq>(name: &str, got: &[T], expected: &[T]) -> Row {
    if got.len() != expected.len() {
        return Row::new(name, Verdict::Fail, format!("{} values, wanted {}", got.len(), expected.len()));
    }
    Row::equal(name, got.iter().zip(expected).filter(|(a, b)| a == b).count(), expected.len())
}
