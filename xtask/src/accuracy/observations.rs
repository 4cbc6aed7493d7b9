//! What is predicted on: observation files, or the demo's observation and variations of it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_host::encode::EncoderOptions;
use gr00t_host::image::Frame;
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Observation, ObservationFile, Values};
use gr00t_host::state::UnknownKeys;
use gr00t_host::{ModelConfig, ModelInputs};

use crate::demo;
use crate::robot::{Robot, RobotArgs};
use crate::weights::Loaded;
use crate::workspace;

/// Instructions of the variations, in turn.
const INSTRUCTIONS: [&str; 4] = [
    "pick the pear from the counter and place it in the plate",
    "open the drawer",
    "hand me the bottle on the left, then wait until I have put it down on the table again",
    "wave",
];

/// One observation, encoded.
#[derive(Debug)]
pub(super) struct Case {
    /// Where it is from.
    pub(super) name: String,
    /// What the model reads.
    pub(super) inputs: ModelInputs,
    /// What makes physical actions of its output, and statistics.
    pub(super) robot: Arc<Robot>,
}

impl Case {
    fn new(name: String, robot: &Arc<Robot>, observation: &Observation, seed: u64) -> Result<Self> {
        let encoded = robot.encoder.encode(observation, &Noise::Seed(seed));
        let inputs = encoded.with_context(|| format!("observation {name}"))?.inputs;
        Ok(Self { name, inputs, robot: Arc::clone(robot) })
    }

    /// The widest `max - min` of the statistics of an action key.
    pub(super) fn range(&self, key: &str) -> Option<f64> {
        let (embodiment, _) = self.robot.metadata.embodiment(&self.robot.data_config.embodiment).ok()?;
        let statistics = embodiment.statistics.action.get(key)?;
        statistics.max.iter().zip(&statistics.min).map(|(max, min)| max - min).reduce(f64::max)
    }
}

/// Keys that a file has and the robot does not use are no concern of this command.
fn options() -> EncoderOptions {
    EncoderOptions { unknown_keys: UnknownKeys::Warn, ..EncoderOptions::default() }
}

/// The observations of `files`, each with the noise of its place in the list, and the model's config.
///
/// # Errors
/// If one cannot be read or encoded, or they are not of one embodiment and horizon.
pub(super) fn read(files: &[PathBuf], args: &RobotArgs, loaded: &Loaded) -> Result<(ModelConfig, Vec<Case>)> {
    let mut cases: Vec<Case> = Vec::new();
    for (seed, path) in (0..).zip(files) {
        let file = ObservationFile::read(path)?;
        let robot = Arc::new(Robot::of_observation(args, loaded, &file, options())?);
        let case = Case::new(path.display().to_string(), &robot, &file.observation()?, seed)?;
        if let Some(first) = cases.first() {
            let of = |case: &Case| (case.inputs.embodiment_id, case.robot.config.gr00t.action_horizon);
            if of(first) != of(&case) {
                bail!(
                    "{}: embodiment slot and horizon {:?}, those of {} are {:?}",
                    case.name,
                    of(&case),
                    first.name,
                    of(first)
                );
            }
        }
        cases.push(case);
    }
    let config = cases.first().context("no observation")?.robot.config.clone();
    Ok((config, cases))
}

/// The demo's observation, then `count - 1` variations: the picture moved and darkened, states anywhere in the statistics' range,
/// another instruction, other noise. Always the same ones.
///
/// # Errors
/// If the demo's observation does not fit the weights.
pub(super) fn made(count: usize, args: &RobotArgs, loaded: &Loaded) -> Result<(ModelConfig, Vec<Case>)> {
    let file = ObservationFile::read(workspace::root().join(demo::OBSERVATION))?;
    let robot = Arc::new(Robot::of_observation(args, loaded, &file, options())?);
    let demo = file.observation()?;
    let mut cases = vec![Case::new("demo".into(), &robot, &demo, 0)?];
    for number in 1..count {
        let varied = variation(&demo, &robot, number)?;
        cases.push(Case::new(format!("variation {number}"), &robot, &varied, number as u64)?);
    }
    Ok((robot.config.clone(), cases))
}

fn variation(demo: &Observation, robot: &Robot, number: usize) -> Result<Observation> {
    let (embodiment, _) = robot.metadata.embodiment(&robot.data_config.embodiment)?;
    let mut random = Random(number as u64);
    let mut varied = Observation {
        instruction: INSTRUCTIONS.get(number % INSTRUCTIONS.len()).map(|text| (*text).to_string()),
        ..Observation::default()
    };
    for (view, frame) in &demo.images {
        varied.images.insert(view.clone(), moved(frame, 31 * number, 1.0 - 0.15 * random.unit())?);
    }
    for key in demo.state.keys() {
        let statistics = embodiment.statistics.state.get(key);
        let statistics = statistics.with_context(|| format!("no statistics of state {key}"))?;
        let values = statistics.min.iter().zip(&statistics.max);
        let values = values.map(|(min, max)| min + (max - min) * random.unit()).collect();
        varied.state.insert(key.clone(), Values::F64(values));
    }
    Ok(varied)
}

/// `frame` moved to the right by `by` pixels around its edge, and all values times `light`.
fn moved(frame: &Frame, by: usize, light: f64) -> Result<Frame> {
    let row = frame.width() * 3;
    let mut rgb: Vec<u8> = frame.rgb().iter().map(|&value| (f64::from(value) * light) as u8).collect();
    for line in rgb.chunks_exact_mut(row) {
        line.rotate_right(by * 3 % row);
    }
    Ok(Frame::new(frame.width(), frame.height(), rgb)?)
}

/// Steele and Vigna's SplitMix64, for made-up states.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_frame_keeps_its_pixels() {
        let frame = Frame::new(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(moved(&frame, 1, 1.0).unwrap().rgb(), [4, 5, 6, 1, 2, 3]);
        assert_eq!(moved(&frame, 4, 1.0).unwrap(), frame);
    }

    #[test]
    fn made_up_states_stay_in_range() {
        let mut random = Random(1);
        let values: Vec<f64> = (0..1000).map(|_| random.unit()).collect();
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
    }
}
