//! The body of `/predict`, and what it means for the served robot.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use gr00t_host::image::Frame;
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Observation, StateDtype};
use serde::Deserialize;

use super::IMAGE_SIDES;
use super::predict_fields::{Fields, Image, NoiseRows, Row};
use crate::service::{Request, Robot, Rules};
use crate::text::{cut, shown};

/// Standard base64, padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is said of a body that is not the form.
const MAX_MESSAGE_CHARS: usize = 500;

/// One observation, as clients send it. Unknown fields are errors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PredictBody {
    images: Fields<Image>,
    state: Fields<Row>,
    #[serde(alias = "language", alias = "prompt")]
    instruction: String,
    #[serde(default)]
    embodiment: Option<String>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    noise: Option<NoiseRows>,
    #[serde(default)]
    state_dtype: Option<StateDtype>,
    #[serde(default)]
    return_normalized: bool,
}

/// What the answer repeats of the request.
#[derive(Debug, Clone, Default)]
pub(super) struct Echo {
    /// Camera → height and width as received.
    pub(super) received_hw: BTreeMap<String, [usize; 2]>,
    /// `float64` or `float32`.
    pub(super) state_dtype: &'static str,
    /// Whether the client brought noise of its own.
    pub(super) client_noise: bool,
    /// Whether normalised actions are wanted too.
    pub(super) return_normalized: bool,
}

impl PredictBody {
    /// Parses the JSON.
    ///
    /// # Errors
    /// The reason, in one line: syntax, types, unknown or missing fields, more values than any robot has.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        // serde takes a list of the fields' values for the object
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err("the body is a list, wanted an object".into());
        }
        serde_json::from_slice(bytes).map_err(|error| {
            // it repeats the client's names and texts, whatever their length
            cut(&error.to_string(), MAX_MESSAGE_CHARS)
        })
    }

    /// The request for `robot`, with everything that is wrong with it, and what the answer repeats.
    pub(super) fn into_request(self, robot: &Robot) -> (Request, Echo) {
        let mut problems = Vec::new();
        let dtype = self.state_dtype.unwrap_or_default();
        let mut echo = Echo {
            state_dtype: match dtype {
                StateDtype::Float32 => "float32",
                StateDtype::Float64 => "float64",
            },
            client_noise: self.noise.is_some(),
            return_normalized: self.return_normalized,
            ..Echo::default()
        };
        let mut observation = Observation::default();
        for (camera, image) in self.images.0 {
            match frame(image) {
                Ok(frame) => {
                    echo.received_hw.insert(camera.clone(), [frame.height(), frame.width()]);
                    observation.images.insert(camera, frame);
                }
                Err(what) => problems.push(format!("image {camera}: {what}")),
            }
        }
        for (key, row) in self.state.0 {
            match one_step(row) {
                Ok(values) => {
                    observation.state.insert(key, dtype.narrow(values));
                }
                Err(what) => problems.push(format!("state {key}: {what}")),
            }
        }
        if self.instruction.is_empty() {
            problems.push("instruction: empty, wanted 1 to 2000 characters".into());
        }
        observation.instruction = Some(self.instruction);
        let served = robot.data_config.embodiment.name();
        if let Some(embodiment) = self.embodiment.filter(|embodiment| embodiment != served) {
            problems.push(format!("embodiment: got {}, this server's is {served}", shown(&embodiment)));
        }
        let noise = match (self.seed, self.noise) {
            (Some(_), Some(_)) => {
                problems.push("noise: given beside a seed, wanted one of them".into());
                None
            }
            (Some(seed), None) => Some(Noise::Seed(seed)),
            (None, Some(rows)) => match explicit(&rows, robot.horizon) {
                Ok(noise) => Some(noise),
                Err(what) => {
                    problems.push(format!("noise: {what}"));
                    None
                }
            },
            (None, None) => None,
        };
        let request = Request { observation, noise, rules: Rules::Predict, problems, ..Request::default() };
        (request, echo)
    }
}

fn frame(image: Image) -> Result<Frame, String> {
    let text = match image {
        Image::One(text) => text,
        Image::Frames(mut frames) if frames.len() == 1 => frames.pop().unwrap_or_default(),
        Image::Frames(frames) => return Err(format!("{} frames, wanted 1", frames.len())),
    };
    // browsers write a picture as a data URL
    let text = match text.split_once(";base64,") {
        Some((head, rest)) if head.starts_with("data:") => rest,
        _ => text.as_str(),
    };
    let bytes = BASE64.decode(text.trim()).map_err(|error| format!("not base64: {error}"))?;
    let frame = Frame::decode(&bytes).map_err(|error| error.of_image())?;
    let (width, height) = (frame.width(), frame.height());
    if IMAGE_SIDES.contains(&width) && IMAGE_SIDES.contains(&height) {
        return Ok(frame);
    }
    let (least, most) = (IMAGE_SIDES.start(), IMAGE_SIDES.end());
    Err(format!("{width}x{height} pixels, wanted sides from {least} to {most}"))
}

fn one_step(row: Row) -> Result<Vec<f64>, String> {
    match row {
        Row::Flat(values) => Ok(values),
        Row::Nested(mut rows) if rows.len() == 1 => Ok(rows.pop().unwrap_or_default()),
        Row::Nested(rows) => Err(format!("{} time steps, wanted 1", rows.len())),
    }
}

fn explicit(rows: &NoiseRows, horizon: usize) -> Result<Noise, String> {
    let rows = &rows.0;
    let width = rows.first().map_or(0, |row| row.0.len());
    if rows.len() != horizon || rows.iter().any(|row| row.0.len() != width) {
        return Err(format!("{} rows, wanted {horizon} of equal length", rows.len()));
    }
    Ok(Noise::Explicit(rows.iter().flat_map(|row| row.0.iter().copied()).collect()))
}
