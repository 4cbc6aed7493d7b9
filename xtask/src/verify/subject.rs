//! What is judged: the fp32 reference, or the model on a device through its replayed traces.

use std::sync::Arc;

use anyhow::Result;
use gr00t_host::checkpoint::TensorSource;
use gr00t_host::{ModelConfig, ModelInputs, Weights};
use gr00t_model::{Gr00t, RunOptions};
use ndarray::ArrayView2;
use reference::Reference;
use tt_ops::Soft;

use super::VerifyArgs;
use super::figures::Grading;
use super::report::Row;
use super::stages::StageJudge;
use crate::device::Model;
use crate::progress::{Progress, Watch};

/// A model, ready to run one case.
pub(super) struct Subject {
    running: Running,
    progress: Arc<Progress>,
}

enum Running {
    Reference(Box<Reference>),
    Device { model: Box<Gr00t<Soft>>, steps: usize },
}

impl Subject {
    /// Loads what `args` asks for.
    ///
    /// # Errors
    /// If the weights do not fit, or the device cannot be opened.
    pub(super) fn load(
        args: &VerifyArgs,
        config: &ModelConfig,
        source: &Arc<dyn TensorSource>,
        inputs: &ModelInputs,
        steps: usize,
        progress: &Arc<Progress>,
    ) -> Result<Self> {
        let running = match args.model {
            Model::Reference => {
                let reference = Reference::new(config, Weights::new(Arc::clone(source)));
                Running::Reference(Box::new(reference.with_denoising_steps(steps)?))
            }
            Model::Device => {
                let model = args.device.load(config, source, inputs.embodiment_id, None, progress)?;
                Running::Device { model: Box::new(model), steps }
            }
        };
        Ok(Self { running, progress: Arc::clone(progress) })
    }

    /// How strictly it is judged.
    pub(super) fn grading(&self) -> Grading {
        match &self.running {
            Running::Reference(_) => Grading::Reference,
            Running::Device { model, .. } => Grading::Device { min_pcc: model.dtype_policy().min_pcc() },
        }
    }

    /// Runs, hands every stage to `judge`, and gives `action_pred`, row-major. On a device what is returned comes from traces that
    /// keep no stage; that watching changes nothing is a row of its own.
    pub(super) fn run(&self, inputs: &ModelInputs, judge: &mut StageJudge<'_>) -> Result<Vec<f32>> {
        match &self.running {
            Running::Reference(reference) => {
                let mut stage = |name: &str, tensor: ArrayView2<'_, f32>| {
                    let values: Vec<f32> = tensor.iter().copied().collect();
                    judge.stage(name, tensor.ncols(), &values);
                };
                let output = reference.predict(inputs, &mut Watch::new(&self.progress, &mut stage))?;
                Ok(output.iter().copied().collect())
            }
            Running::Device { model, steps } => {
                let options = RunOptions::new().denoising_steps(*steps);
                let mut stage =
                    |name: &str, [_, width]: [usize; 2], values: &[f32]| judge.stage(name, width, values);
                let observed = model.observe(inputs, &options, &mut stage)?.action_pred;
                let replayed = self.predict(inputs)?;
                let equal =
                    observed.iter().zip(&replayed).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
                judge.add(Row::equal("observed run's bytes", equal, replayed.len()));
                Ok(replayed)
            }
        }
    }

    /// Runs once more, unobserved.
    pub(super) fn predict(&self, inputs: &ModelInputs) -> Result<Vec<f32>> {
        match &self.running {
            Running::Reference(reference) => {
                let output = reference.predict(inputs, &mut Watch::new(&self.progress, &mut |_, _| ()))?;
                Ok(output.iter().copied().collect())
            }
            Running::Device { model, steps } => {
                Ok(model.predict(inputs, &RunOptions::new().denoising_steps(*steps))?.action_pred)
            }
        }
    }
}
