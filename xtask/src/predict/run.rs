//! One prediction: what is put together, in which order, and how long each part took.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use gr00t_host::encode::{Encoded, EncoderOptions};
use gr00t_host::image::ResolutionPolicy;
use gr00t_host::observation::ObservationFile;
use gr00t_host::{ActionChunk, ModelConfig, ModelInputs, TensorSource, Weights};
use gr00t_model::{PackedCache, RunOptions};
use reference::Reference;
use tt_ops::Device;

use super::NoiseChoice;
use crate::device::{DeviceArgs, Model};
use crate::full_size;
use crate::progress::{Progress, Watch};
use crate::robot::{Robot, RobotArgs};
use crate::weights::WeightsArgs;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Weights and their config.
    pub(crate) weights: &'a WeightsArgs,
    /// What runs the model.
    pub(crate) model: Model,
    /// The device, where it is one.
    pub(crate) device: &'a DeviceArgs,
    /// The observation.
    pub(crate) file: &'a ObservationFile,
    /// Statistics and data config that win over the observation's.
    pub(crate) robot: &'a RobotArgs,
    /// Initial noise.
    pub(crate) noise: NoiseChoice,
    /// Denoising steps, if not the model's own.
    pub(crate) steps: Option<usize>,
    /// What an image of another size than the metadata's gets.
    pub(crate) resolution: ResolutionPolicy,
}

/// The result, and all that a person wants to know of how it came about.
#[derive(Debug)]
pub(crate) struct Prediction {
    /// Physical actions.
    pub(crate) chunk: ActionChunk,
    /// The model's inputs, prompt and warnings.
    pub(crate) encoded: Encoded,
    /// One line on the weights.
    pub(crate) weights: String,
    /// The data config's name.
    pub(crate) data_config: String,
    /// The embodiment's tag.
    pub(crate) embodiment: String,
    /// Where the statistics came from.
    pub(crate) metadata: String,
    /// What ran the model.
    pub(crate) ran_on: String,
    /// Denoising steps.
    pub(crate) steps: usize,
    /// Part → wall time, in the order of the run.
    pub(crate) times: Vec<(String, Duration)>,
}

/// Runs the whole path.
///
/// # Errors
/// If weights, observation, statistics and data config do not fit together, or the device is one that this does not run on.
pub(crate) fn predict(request: &Request<'_>, progress: &Arc<Progress>) -> Result<Prediction> {
    request.device.must_be_soft()?;
    let start = Instant::now();
    let loaded = request.weights.load(progress)?;
    let mut times = vec![("open weights".to_string(), start.elapsed())];

    let options = EncoderOptions { resolution: request.resolution, ..EncoderOptions::default() };
    let robot = Robot::of_observation(request.robot, &loaded, request.file, options)?;
    let config = &robot.config;
    let noise = request.noise.for_model(config.gr00t.action_horizon, config.gr00t.action_dim)?;
    let steps = request.steps.unwrap_or(config.gr00t.action_head_cfg.num_inference_timesteps);

    let start = Instant::now();
    let observation = request.file.observation()?;
    times.push(("decode images".into(), start.elapsed()));
    let mut encoded = robot.encoder.encode(&observation, &noise)?;
    encoded.warnings.extend(robot.warning.clone());
    times.push(("preprocess images".into(), encoded.timings.images));
    times.push(("tokenise".into(), encoded.timings.prompt));
    times.push(("state and noise".into(), encoded.timings.state));

    let _alone = full_size::alone(config)?;
    let run = Run { config, source: &loaded.source, inputs: &encoded.inputs, steps };
    let (action_pred, ran_on) = match request.model {
        Model::Reference => (run.reference(progress, &mut times)?, "the fp32 reference".to_string()),
        Model::Device => run.device(request.device, loaded.cache, progress, &mut times)?,
    };

    let start = Instant::now();
    let chunk = robot.decoder.decode(&action_pred)?;
    times.push(("decode actions".into(), start.elapsed()));
    Ok(Prediction {
        chunk,
        encoded,
        weights: loaded.description,
        embodiment: robot.data_config.embodiment.name().to_string(),
        data_config: robot.data_config.name,
        metadata: robot.metadata_from,
        ran_on,
        steps,
        times,
    })
}

/// Model inputs and what they run through.
struct Run<'a> {
    config: &'a ModelConfig,
    source: &'a Arc<dyn TensorSource>,
    inputs: &'a ModelInputs,
    steps: usize,
}

impl Run<'_> {
    fn reference(&self, progress: &Progress, times: &mut Vec<(String, Duration)>) -> Result<Vec<f32>> {
        let reference = Reference::new(self.config, Weights::new(Arc::clone(self.source)))
            .with_denoising_steps(self.steps)?;
        let mut no_stage = |_: &str, _: ndarray::ArrayView2<'_, f32>| ();
        let mut watch = Watch::new(progress, &mut no_stage);
        let action_pred = reference.predict(self.inputs, &mut watch)?;
        times.extend(watch.times.iter().map(|(part, time)| (part.name().to_string(), *time)));
        Ok(action_pred.iter().copied().collect())
    }

    /// Loads, captures, and replays; the second replay is what is timed, as every later request would be.
    fn device(
        &self,
        device: &DeviceArgs,
        cache: Option<PackedCache>,
        progress: &Arc<Progress>,
        times: &mut Vec<(String, Duration)>,
    ) -> Result<(Vec<f32>, String)> {
        let start = Instant::now();
        let model = device.load(self.config, self.source, self.inputs.embodiment_id, cache, progress)?;
        times.push(("load weights".into(), start.elapsed()));
        let options = RunOptions::new().denoising_steps(self.steps);
        let start = Instant::now();
        model.predict(self.inputs, &options)?;
        times.push(("capture and first run".into(), start.elapsed()));
        let output = model.predict(self.inputs, &options)?;
        times.push(("write inputs".into(), output.timings.write));
        times.extend(output.timings.stages.iter().map(|s| (s.stage.name().to_string(), s.elapsed)));
        times.push(("read actions".into(), output.timings.read));
        let ran_on = format!("{}, {}", model.device().describe(), model.dtype_policy());
        Ok((output.action_pred, ran_on))
    }
}
