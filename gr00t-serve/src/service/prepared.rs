//! A request between the host's two halves: read and encoded, then run on the device and decoded.

use std::time::Instant;

use gr00t_host::ModelInputs;
use gr00t_host::encode::Encoded;
use gr00t_host::noise::Noise;
use gr00t_model::{CancelToken, ModelError, RunOptions};
use tokio::sync::OwnedSemaphorePermit;

use super::engine::Engine;
use super::error::ServiceError;
use super::request::{Reply, Request, Timings};
use super::robot::Robot;

/// Inputs up to here are not what makes actions infinite: f32 holds the square of their sum over the model's widest row.
/// Real states are around 1 once normalised, and so is noise.
const BLAMELESS: f32 = 1e12;

/// What waits for the device.
pub(super) struct Prepared {
    encoded: Encoded,
    noise: Noise,
    options: RunOptions,
    timings: Timings,
    /// Whether the robot gave no instruction of its own.
    pub(super) is_default_prompt: bool,
}

impl Prepared {
    /// Reads and encodes. Nothing is done for a client that has gone away.
    pub(super) fn new(
        engine: &Engine,
        read: impl FnOnce(&Robot) -> Result<Request, ServiceError>,
        default_noise: Noise,
        cancel: &CancelToken,
    ) -> Result<Self, ServiceError> {
        if cancel.is_cancelled() {
            return Err(ServiceError::Cancelled);
        }
        let reading = Instant::now();
        let request = read(&engine.robot)?;
        let read = reading.elapsed();
        let noise = request.noise.unwrap_or(default_noise);

        let encoding = Instant::now();
        let encoded = engine.encoder(request.rules).encode(&request.observation, &noise);
        let encoded = with_problems(encoded.map_err(ServiceError::from), request.problems)?;
        let encode = encoding.elapsed();

        let mut options = RunOptions::new().cancel_token(cancel.clone());
        if let Some(steps) = request.denoising_steps {
            options = options.denoising_steps(steps);
        }
        let timings = Timings { read, encode, encode_parts: encoded.timings, ..Timings::default() };
        let is_default_prompt = request.observation.instruction.is_none();
        Ok(Self { encoded, noise, options, timings, is_default_prompt })
    }

    /// Runs on the device, which `turn` is the right to, and decodes after giving it back.
    pub(super) fn run(
        self,
        engine: &Engine,
        cancel: &CancelToken,
        turn: OwnedSemaphorePermit,
    ) -> Result<Reply, ServiceError> {
        if cancel.is_cancelled() {
            return Err(ServiceError::Cancelled);
        }
        let Self { encoded, noise, options, mut timings, .. } = self;
        let running = Instant::now();
        let actions = engine.model.predict(&encoded.inputs, &options);
        timings.device = running.elapsed();
        drop(turn);
        let actions = actions.map_err(|error| match error {
            ModelError::NotFinite { .. } => {
                blame(&encoded.inputs).map_or(error.into(), ServiceError::Invalid)
            }
            error => error.into(),
        })?;
        let decoding = Instant::now();
        let chunk = engine.decoder.decode(&actions.action_pred)?;
        timings.decode = decoding.elapsed();
        timings.model = actions.timings;
        let Encoded { prompt, warnings, .. } = encoded;
        Ok(Reply { chunk, action_pred: actions.action_pred, noise, prompt, warnings, timings })
    }
}

/// Which inputs made the actions infinite; `None` if it was none of them.
fn blame(inputs: &ModelInputs) -> Option<Vec<String>> {
    let parts = [("state", &inputs.state), ("noise", &inputs.noise)];
    let problems = parts.into_iter().filter_map(|(part, values)| {
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        (largest > BLAMELESS).then(|| {
            format!("{part}: values up to {largest:e} (normalised) are beyond what the model can compute")
        })
    });
    Some(problems.collect::<Vec<_>>()).filter(|problems| !problems.is_empty())
}

/// The encoder's result, unless something was wrong already: then all that is wrong. What could not be read is not said to be missing.
fn with_problems(
    encoded: Result<Encoded, ServiceError>,
    mut problems: Vec<String>,
) -> Result<Encoded, ServiceError> {
    if problems.is_empty() {
        return encoded;
    }
    if let Err(error) = encoded {
        let unread: Vec<String> = problems
            .iter()
            .filter_map(|problem| Some(format!("{} is missing", problem.split_once(": ")?.0)))
            .collect();
        let is_known = |problem: &String| unread.iter().any(|known| problem.starts_with(known));
        problems.extend(error.problems().into_iter().filter(|problem| !is_known(problem)));
    }
    Err(ServiceError::Invalid(problems))
}
