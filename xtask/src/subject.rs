//! What commands judge: the fp32 reference, or the model on a device through its replayed traces.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use gr00t_host::checkpoint::TensorSource;
use gr00t_host::{ModelConfig, ModelInputs, Weights};
use gr00t_model::{Gr00t, PackedCache, RunOptions};
use ndarray::ArrayView2;
use reference::Reference;
use tt_ops::{Device, Metal, Soft};

use crate::device::{DeviceArgs, Kind, Model};
use crate::progress::{Progress, Watch};

/// A model, ready to run.
pub(crate) struct Subject {
    running: Running,
    progress: Arc<Progress>,
}

enum Running {
    Reference(Box<Reference>),
    Device { model: Box<Gr00t<Soft>>, options: RunOptions },
    Card { model: Box<Gr00t<Metal>>, options: RunOptions },
}

/// What is loaded into a subject.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    /// Sizes.
    pub(crate) config: &'a ModelConfig,
    /// Tensors.
    pub(crate) source: &'a Arc<dyn TensorSource>,
    /// Slot of the category-specific weights.
    pub(crate) embodiment_id: usize,
    /// Denoising steps.
    pub(crate) steps: usize,
    /// Where weights packed for a device are kept, if anywhere.
    pub(crate) cache: Option<PackedCache>,
}

impl Subject {
    /// Loads what `model` asks for; the card is always the model's.
    ///
    /// # Errors
    /// If the weights do not fit, or the device cannot be opened.
    pub(crate) fn load(
        model: Model,
        device: &DeviceArgs,
        load: Load<'_>,
        progress: &Arc<Progress>,
    ) -> Result<Self> {
        let Load { config, source, embodiment_id, steps, cache } = load;
        let running = match model {
            _ if device.device == Kind::Metal => {
                let card = DeviceArgs::open_metal()?;
                let model = device.load_on(card, config, source, embodiment_id, cache, progress)?;
                Running::Card { model: Box::new(model), options: RunOptions::new().denoising_steps(steps) }
            }
            Model::Reference => {
                let reference = Reference::new(config, Weights::new(Arc::clone(source)));
                Running::Reference(Box::new(reference.with_denoising_steps(steps)?))
            }
            Model::Device => Running::Device {
                model: Box::new(device.load(config, source, embodiment_id, cache, progress)?),
                options: RunOptions::new().denoising_steps(steps),
            },
        };
        Ok(Self { running, progress: Arc::clone(progress) })
    }

    /// The model, where it is on the software device.
    pub(crate) fn on_device(&self) -> Option<&Gr00t<Soft>> {
        match &self.running {
            Running::Reference(_) | Running::Card { .. } => None,
            Running::Device { model, .. } => Some(model),
        }
    }

    /// The correlation that the stages of a device must reach; nothing for the reference.
    pub(crate) fn min_pcc(&self) -> Option<f64> {
        /// On the card in every dtype policy.
        const CARD: f64 = 0.999;
        match &self.running {
            Running::Reference(_) => None,
            Running::Device { model, .. } => Some(model.dtype_policy().min_pcc()),
            Running::Card { .. } => Some(CARD),
        }
    }

    /// One line on what runs.
    pub(crate) fn describe(&self) -> String {
        fn line<D: Device>(model: &Gr00t<D>) -> String {
            format!("{}, {}", model.device().describe(), model.dtype_policy())
        }
        match &self.running {
            Running::Reference(_) => "the fp32 reference".into(),
            Running::Device { model, .. } => line(model),
            Running::Card { model, .. } => line(model),
        }
    }

    /// Runs, hands every stage (name, width, values row-major) to `stage`, and gives `action_pred`, row-major.
    ///
    /// # Errors
    /// If the inputs do not fit or a result is not finite.
    pub(crate) fn observe(
        &self,
        inputs: &ModelInputs,
        stage: &mut dyn FnMut(&str, usize, &[f32]),
    ) -> Result<Vec<f32>> {
        match &self.running {
            Running::Reference(reference) => {
                let mut flat = |name: &str, tensor: ArrayView2<'_, f32>| {
                    let values: Vec<f32> = tensor.iter().copied().collect();
                    stage(name, tensor.ncols(), &values);
                };
                let output = reference.predict(inputs, &mut Watch::new(&self.progress, &mut flat))?;
                Ok(output.iter().copied().collect())
            }
            Running::Device { model, options } => observed(model, options, inputs, stage),
            Running::Card { model, options } => observed(model, options, inputs, stage),
        }
    }

    /// Runs unobserved and gives `action_pred` and, of a device, the time that it took.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub(crate) fn predict(&self, inputs: &ModelInputs) -> Result<(Vec<f32>, Option<Duration>)> {
        match &self.running {
            Running::Reference(reference) => {
                let output = reference.predict(inputs, &mut Watch::new(&self.progress, &mut |_, _| ()))?;
                Ok((output.iter().copied().collect(), None))
            }
            Running::Device { model, options } => predicted(model, options, inputs),
            Running::Card { model, options } => predicted(model, options, inputs),
        }
    }
}

fn observed<D: Device>(
    model: &Gr00t<D>,
    options: &RunOptions,
    inputs: &ModelInputs,
    stage: &mut dyn FnMut(&str, usize, &[f32]),
) -> Result<Vec<f32>> {
    let mut flat = |name: &str, [_, width]: [usize; 2], values: &[f32]| stage(name, width, values);
    Ok(model.observe(inputs, options, &mut flat)?.action_pred)
}

fn predicted<D: Device>(
    model: &Gr00t<D>,
    options: &RunOptions,
    inputs: &ModelInputs,
) -> Result<(Vec<f32>, Option<Duration>)> {
    let output = model.predict(inputs, options)?;
    let elapsed = output.device_time();
    Ok((output.action_pred, Some(elapsed)))
}
