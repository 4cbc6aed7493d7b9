//! From a plan and a device to a warm model.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use gr00t_host::checkpoint::{GR00T_N1_5_3B, WeightsSpec};
use gr00t_model::Policy;
use gr00t_model::tt_ops::Device;

use super::facts;
use super::plan::Plan;
use super::progress::Progress;
use super::warm_up;
use crate::about::About;
use crate::options::ServeOptions;
use crate::service::{Engine, Rules, Service};

/// A warm model, installed in the service.
#[derive(Debug)]
pub struct Booted {
    about: About,
}

impl Booted {
    /// What the server says of itself.
    pub fn about(self) -> About {
        self.about
    }
}

/// The lines before a device is opened.
pub(super) fn opening(progress: &Progress, options: &ServeOptions) {
    let ServeOptions { device, device_id, trace_region_size, l1_small_size, .. } = options;
    progress.say(&format!("Device {device_id}: Loading {device}"));
    progress.say(&format!(
        "Opening device {device_id} (trace_region_size={trace_region_size}, l1_small_size={l1_small_size})"
    ));
}

/// Loads, captures, warms up and compares with the reference. The service has the engine afterwards; its door is closed still.
///
/// Blocks; must run where tokio's handle can be had and blocking is allowed.
///
/// # Errors
/// What the device or the weights report; a fidelity below the options' least.
pub fn boot<D: Device>(
    plan: &Arc<Plan>,
    device: &D,
    service: &Service,
    progress: &Progress,
) -> Result<Booted> {
    let started = Instant::now();
    progress.say(&format!(
        "Starting devices in cluster: {}; multidevice with 1 devices and grid (1, 1) is created",
        device.describe()
    ));
    progress.say("Created mesh device; Fabric initialized on 1 devices");
    progress.say(&format!("Loading weights: {}", plan.spec));
    if matches!(plan.spec, WeightsSpec::Hub(_)) && plan.spec.to_string() != GR00T_N1_5_3B {
        progress.say(&format!(
            "Weights are a fine-tune or another revision: those checked against are {GR00T_N1_5_3B}"
        ));
    }
    let tokenizer = match (&plan.options.tokenizer, plan.tokenizer.is_built_in()) {
        (Some(folder), false) => folder.display().to_string(),
        (None, false) => "the checkpoint's".into(),
        (_, true) => "built in".into(),
    };
    progress.say(&format!("Tokenizer files: {tokenizer}"));
    progress.say(&format!(
        "Loading pipeline: GR00T N1.5, policy {}, data config {}",
        plan.options.policy, plan.data_config.name
    ));

    let loading_since = Instant::now();
    let its_progress = progress.clone();
    let cache = plan.packed_cache()?;
    let policy = Policy::builder(&plan.checkpoint, device.clone())
        .data_config(plan.data_config.clone())
        .metadata(plan.metadata.clone())
        .tokenizer(Arc::clone(&plan.tokenizer))
        .dtype_policy(plan.options.policy)
        .encoder_options(plan.encoder_options(Rules::Predict))
        .action_options(plan.action_options())
        .configure(|model| {
            let model = model.trace_layout(plan.options.trace_layout).on_progress(move |load| {
                its_progress.bar("Loading weights", load.elements, load.total_elements);
            });
            let model = model.packed_cache(cache).cancel_token(progress.cancel().clone());
            match plan.options.denoising_steps {
                Some(steps) => model.denoising_steps(steps),
                None => model,
            }
        })
        .build()?;
    let upstream = Policy::on(Arc::clone(policy.model()))
        .data_config(plan.data_config.clone())
        .metadata(plan.metadata.clone())
        .tokenizer(Arc::clone(&plan.tokenizer))
        .encoder_options(plan.encoder_options(Rules::Upstream))
        .action_options(plan.action_options())
        .build()?;
    let structure = policy.model().structure();
    let (tensors, bytes) = structure
        .classes
        .iter()
        .fold((0, 0), |(tensors, bytes), class| (tensors + class.tensors, bytes + class.bytes));
    let cache = policy.model().packed_cache();
    progress.say(&format!(
        "Model built in {:.1} s ({tensors} tensors, {} MB on device, cache path {})",
        loading_since.elapsed().as_secs_f64(),
        bytes / 1_000_000,
        cache.map_or("off", |cache| if cache.stats().misses + cache.stats().damaged == 0 {
            "warm"
        } else {
            "cold"
        })
    ));
    if let Some(cache) = cache {
        progress.say(&cache.to_string());
    }
    progress.say("Model loaded and pipeline ready");

    progress.check()?;
    service.install(Engine::new(&policy, &upstream, plan.data_config.clone(), plan.metadata.clone()));
    let warm = warm_up::warm_up(plan, &policy, service, progress)?;
    progress.say(&format!(
        "Warmup complete (capture {:.2} s, first {:.1} ms, steady {:.1} ms; boot {:.1} s) -- {} traces {:?}",
        warm.capture.as_secs_f64(),
        warm.first_ms(),
        warm.steady_ms(),
        started.elapsed().as_secs_f64(),
        plan.options.trace_layout,
        plan.options.trace_layout.stages().iter().map(|stage| stage.name()).collect::<Vec<_>>()
    ));
    progress.say("Model warmup completed");
    Ok(Booted { about: facts::about(plan, device, &structure, warm) })
}
