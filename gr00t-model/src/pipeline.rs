//! One captured pipeline: inputs that are written, stages that are replayed, actions that are read.

use std::sync::Arc;
use std::time::Instant;

use gr00t_host::ModelConfig;
use half::bf16;
use tt_ops::{Bfloat16, Capture, CaptureOptions, Device, Dtype, Dynamic, Static, Tensor, Trace};

use crate::denoise::{Embodiment, Observed, StepConstants};
use crate::error::Result;
use crate::llm::RotaryEmbedding;
use crate::mask::{PaddingMask, Queries};
use crate::network::Network;
use crate::observer::Observer;
use crate::stages::{CancelToken, ModelTimings, Stage, StageTiming, TraceLayout};
use crate::taps::Taps;
use crate::trace_cache::TraceKey;
use crate::weights::{Activations, Precise};

/// Stages whose rows are tokens of the sequence, so that observers see them without padding.
const SEQUENCE_STAGES: [&str; 3] = ["llm.", "backbone.", "adapter."];

/// Values of the inputs, row-major.
#[derive(Debug, Default)]
pub(crate) struct InputValues {
    /// `[batch · views, patches, channels · patch²]`.
    pub(crate) patches: Vec<f32>,
    /// `[batch, text tokens, hidden]`.
    pub(crate) text: Vec<bf16>,
    /// Tokens of each row without padding.
    pub(crate) lengths: Vec<usize>,
    /// `[batch, 1, max_state_dim]`.
    pub(crate) state: Vec<f32>,
    /// `[batch, horizon, action_dim]`.
    pub(crate) noise: Vec<f32>,
}

/// The tensors that are written before a replay.
#[derive(Debug)]
struct Inputs<D: Device> {
    patches: Activations<D>,
    text: Precise<D>,
    /// `None` where sequences are never padded.
    padding: Option<Padding<D>>,
    state: Precise<D>,
    noise: Precise<D>,
}

/// What hides padding, and the queries that it is hidden from.
#[derive(Debug)]
struct Padding<D: Device> {
    mask: PaddingMask<D>,
    /// Of the adapter: the sequence's tokens.
    tokens: Queries<D>,
    /// Of the action head: state, target vision tokens and actions.
    actions: Queries<D>,
}

impl<D: Device> Padding<D> {
    fn new(device: &D, config: &ModelConfig, key: &TraceKey) -> Result<Self> {
        let actions = 1 + config.gr00t.action_head_cfg.num_target_vision_tokens + key.horizon;
        Ok(Self {
            mask: PaddingMask::new(device, key.batch, key.bucket())?,
            tokens: Queries::new(device, key.bucket())?,
            actions: Queries::new(device, actions)?,
        })
    }
}

/// A stage's trace.
#[derive(Debug)]
struct CapturedStage<D: Device> {
    stage: Stage,
    trace: Trace<D, Tensor<D, Dynamic>>,
}

/// Captured for one [`TraceKey`].
#[derive(Debug)]
pub(crate) struct Pipeline<D: Device> {
    inputs: Inputs<D>,
    stages: Vec<CapturedStage<D>>,
    action_pred: Precise<D>,
}

/// The embodiment's weights and the constants of each step, kept alive by the pipeline's traces.
pub(crate) struct Conditioning<D: Device> {
    pub(crate) embodiment: Arc<Embodiment<D>>,
    pub(crate) steps: Vec<StepConstants<D>>,
}

impl<D: Device> Inputs<D> {
    fn new(device: &D, config: &ModelConfig, key: &TraceKey) -> Result<Self> {
        let (vision, text, head) =
            (&config.eagle.vision_config, &config.eagle.text_config, &config.gr00t.action_head_cfg);
        let patch = vision.num_channels * vision.patch_size * vision.patch_size;
        let images = key.batch * key.views;
        // a prompt of image tokens alone still has a tensor of text rows, which no piece of the layout reads
        let text_rows = key.layout.text_tokens().max(1);
        Ok(Self {
            patches: Tensor::zeros(device, [images, vision.num_patches(), patch])?,
            text: Tensor::zeros(device, [key.batch, text_rows, text.hidden_size])?,
            padding: key.padded.then(|| Padding::new(device, config, key)).transpose()?,
            state: Tensor::zeros(device, [key.batch, 1, head.max_state_dim])?,
            noise: Tensor::zeros(device, [key.batch, key.horizon, head.action_dim])?,
        })
    }

    /// What hides padding from the queries that `of` picks.
    fn mask(&self, of: impl Fn(&Padding<D>) -> &Queries<D>) -> Result<Option<Activations<D>>> {
        self.padding.as_ref().map(|padding| padding.mask.forward(of(padding))).transpose()
    }

    fn write(&self, values: &InputValues) -> Result<()> {
        self.patches.write(&values.patches)?;
        if !values.text.is_empty() {
            self.text.write(&values.text)?;
        }
        if let Some(padding) = &self.padding {
            padding.mask.write(&values.lengths)?;
        }
        self.state.write(&values.state)?;
        self.noise.write(&values.noise)?;
        Ok(())
    }
}

/// Captures stages one after another.
struct Capturing<'a, D: Device> {
    device: &'a D,
    observed: bool,
    options: CaptureOptions,
    stages: Vec<CapturedStage<D>>,
}

impl<D: Device> Capturing<'_, D> {
    /// Captures `body` as `stage` and gives its result, which later stages read.
    fn stage<T: Dtype + Static>(
        &mut self,
        stage: Stage,
        body: impl Fn(&Taps<'_, D>) -> Result<Tensor<D, T>>,
    ) -> Result<Tensor<D, T>> {
        let body = |capture: &Capture<D>| -> Result<Tensor<D, Dynamic>> {
            Ok(body(&Taps::new(capture, self.observed))?.to_dynamic())
        };
        let trace = self.device.capture_with(self.options, body)?;
        let output = trace.outputs().typed()?;
        self.stages.push(CapturedStage { stage, trace });
        Ok(output)
    }
}

impl<D: Device> Pipeline<D> {
    /// Captures every stage of `network` for `key`.
    pub(crate) fn capture(
        network: &Network<D>,
        conditioning: &Conditioning<D>,
        key: &TraceKey,
        layout: TraceLayout,
        options: CaptureOptions,
    ) -> Result<Self> {
        let (device, config) = (&network.device, &network.config);
        let inputs = Inputs::new(device, config, key)?;
        let rotary = RotaryEmbedding::new(device, &config.eagle.text_config, key.bucket())?;

        let vision = |taps: &Taps<'_, D>| {
            let x = network.vision.forward(&inputs.patches, taps)?;
            let (images, width) = (key.views * config.eagle.tokens_per_view(), x.shape().last());
            Ok(tt_ops::ops::reshape(&x, [key.batch, images, width])?)
        };
        let llm = |image: &Precise<D>, taps: &Taps<'_, D>| {
            network.llm.forward(&inputs.text, image, &key.layout, &rotary, taps)
        };
        let adapter = |features: &Precise<D>, taps: &Taps<'_, D>| {
            network.adapter.forward(features, inputs.mask(|padding| &padding.tokens)?.as_ref(), taps)
        };
        let mut capturing = Capturing { device, observed: key.observed, options, stages: Vec::new() };
        let memory: Tensor<D, Bfloat16> = match layout {
            TraceLayout::PerStage => {
                let image = capturing.stage(Stage::Vision, vision)?;
                let features = capturing.stage(Stage::Llm, |taps| llm(&image, taps))?;
                capturing.stage(Stage::Adapter, |taps| adapter(&features, taps))?
            }
            TraceLayout::Two => {
                capturing.stage(Stage::Backbone, |taps| adapter(&llm(&vision(taps)?, taps)?, taps))?
            }
        };
        let action_pred = capturing.stage(Stage::Denoise, |taps| {
            let mask = inputs.mask(|padding| &padding.actions)?;
            let observed =
                Observed { state: &inputs.state, noise: &inputs.noise, memory: &memory, mask: mask.as_ref() };
            network.head.forward(&conditioning.embodiment, &conditioning.steps, &observed, taps)
        })?;
        Ok(Self { stages: capturing.stages, action_pred, inputs })
    }

    /// Writes the inputs of later replays.
    pub(crate) fn write(&self, values: &InputValues) -> Result<()> {
        self.inputs.write(values)
    }

    /// The stages' traces, in the order in which they run.
    pub(crate) fn traces(&self) -> impl Iterator<Item = (Stage, &Trace<D, Tensor<D, Dynamic>>)> {
        self.stages.iter().map(|s| (s.stage, &s.trace))
    }

    /// Writes `values`, replays every stage and reads `action_pred`.
    pub(crate) fn run(
        &self,
        values: &InputValues,
        cancel: &CancelToken,
        mut observer: Option<&mut dyn Observer>,
        timings: &mut ModelTimings,
    ) -> Result<Vec<f32>> {
        let started = Instant::now();
        self.inputs.write(values)?;
        timings.write = started.elapsed();
        for CapturedStage { stage, trace } in &self.stages {
            cancel.check(*stage)?;
            let started = Instant::now();
            trace.replay()?;
            timings.stages.push(StageTiming { stage: *stage, elapsed: started.elapsed() });
            if let Some(observer) = &mut observer {
                show(trace, values, *observer)?;
            }
        }
        let started = Instant::now();
        let action_pred = self.action_pred.to_vector()?;
        timings.read = started.elapsed();
        Ok(action_pred)
    }

    /// Runs like [`run`](Self::run), but asks the device how long each op takes.
    pub(crate) fn profile(&self, values: &InputValues) -> Result<Vec<(Stage, Vec<tt_ops::OpTime>)>> {
        self.inputs.write(values)?;
        self.stages.iter().map(|s| Ok((s.stage, s.trace.replay_timed()?))).collect()
    }
}

/// Hands what a trace kept to an observer.
fn show<D: Device, O>(trace: &Trace<D, O>, values: &InputValues, observer: &mut dyn Observer) -> Result<()> {
    for (name, tensor) in trace.kept() {
        let width = tensor.shape().last();
        let mut rows = tensor.to_vector::<f32>()?;
        if SEQUENCE_STAGES.iter().any(|stage| name.starts_with(stage)) {
            rows.truncate(values.lengths.first().copied().unwrap_or_default() * width);
        }
        observer.stage(name, [rows.len() / width, width], &rows);
    }
    Ok(())
}
