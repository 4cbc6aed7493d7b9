//! The warm-up: traces captured on the demo observation, a few predictions, and the comparison with the reference that the boot
//! depends on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use gr00t_host::ActionChunk;
use gr00t_host::metrics::{Comparison, Gate, compare};
use gr00t_host::noise::Noise;
use gr00t_model::tt_ops::Device;
use gr00t_model::{Policy, PredictOptions};
use serde_json::{Value, json};

use super::golden;
use super::plan::Plan;
use super::progress::Progress;
use crate::demo;
use crate::service::{Request, Service};

/// Largest difference of a group that hardly moves, whose correlation says nothing.
pub(crate) const MAX_ABS_OF_STILL_GROUP: f64 = 0.05;

/// What the warm-up found.
#[derive(Debug)]
pub(super) struct Warm {
    pub(super) capture: Duration,
    pub(super) runs_ms: Vec<f64>,
    /// All actions, and each group.
    pub(super) fidelity: Value,
    /// The demo's `request` and `expected`.
    pub(super) demo: Value,
}

impl Warm {
    pub(super) fn first_ms(&self) -> f64 {
        self.runs_ms.first().copied().unwrap_or_default()
    }

    pub(super) fn steady_ms(&self) -> f64 {
        self.runs_ms.last().copied().unwrap_or_default()
    }
}

pub(super) fn warm_up<D: Device>(
    plan: &Arc<Plan>,
    policy: &Policy<D>,
    service: &Service,
    progress: &Progress,
) -> Result<Warm> {
    let runs = plan.options.warmup_runs;
    progress.say("Starting model warmup");
    progress.say(&format!(
        "Warming up: capture {} traces on the demo observation, then {runs} traced predict(s)",
        plan.options.trace_layout
    ));
    let robot = service.robot()?;
    let (observation, request) = demo::observation(&robot)?;
    let capturing = Instant::now();
    policy.prepare(&observation, &PredictOptions::new().seed(0))?;
    let capture = capturing.elapsed();

    let mut reply = None;
    let mut runs_ms = Vec::new();
    for run in 1..=runs {
        progress.check()?;
        let request = Request::new(observation.clone()).noise(Noise::Seed(0));
        let got = tokio::runtime::Handle::current().block_on(service.warm_up(request))?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (encode, device, decode) =
            (ms(got.timings.encode), ms(got.timings.device), ms(got.timings.decode));
        progress.say(&format!(
            "Warmup {run}/{runs}: {:.1} ms (encode {encode:.1}, device {device:.1}, decode {decode:.1})",
            ms(got.timings.total)
        ));
        runs_ms.push(ms(got.timings.total));
        reply = Some(got);
    }
    let Some(reply) = reply else { bail!("no warm-up ran") };

    progress.check()?;
    let inputs = policy.encoder().encode(&observation, &Noise::Seed(0))?.inputs;
    let expected = golden::action_pred(plan, policy.model().packed_cache(), inputs, progress)?;
    let wanted = policy.decoder().decode(&expected)?;
    let all = compare(&values(&reply.chunk), &values(&wanted));
    let fidelity = json!({
        "actions": figures(&all),
        "action_pred": figures(&compare(&reply.action_pred, &expected)),
        "groups": groups(&reply.chunk, &wanted),
        "reference": "fp32 reference of this project on the same weights, inputs and noise",
    });
    let pcc = all.pcc.unwrap_or(f64::NAN);
    progress.say(&format!(
        "Warm-up fidelity vs fp32 reference: actions PCC {pcc:.6}, max|d| {:.2e}",
        all.max_abs
    ));
    let gate = Gate { min_pcc: plan.options.warmup_pcc_min, max_abs: f64::INFINITY };
    if !all.passes(&gate) {
        bail!("warm-up fidelity: PCC {pcc:.6} with the fp32 reference, wanted at least {}", gate.min_pcc);
    }
    let expected = json!({
        "actions": wanted.groups.iter().map(|g| (g.key.clone(), crate::http::steps(g))).collect::<serde_json::Map<_, _>>(),
        "gates": { "pcc_min": gate.min_pcc, "max_abs_of_still_group": MAX_ABS_OF_STILL_GROUP },
        "source": "fp32 reference",
    });
    Ok(Warm { capture, runs_ms, fidelity, demo: json!({ "request": request, "expected": expected }) })
}

fn values(chunk: &ActionChunk) -> Vec<f32> {
    chunk.groups.iter().flat_map(|group| group.values.iter().copied()).collect()
}

fn figures(comparison: &Comparison) -> Value {
    json!({ "pcc": comparison.pcc, "max_abs": comparison.max_abs, "rel_rms": comparison.rel_rms })
}

fn groups(got: &ActionChunk, wanted: &ActionChunk) -> Value {
    let group = |wanted: &gr00t_host::action::ActionGroup| {
        let got = got.group(&wanted.key).map_or(&[][..], |group| &group.values);
        (wanted.key.clone(), figures(&compare(got, &wanted.values)))
    };
    Value::Object(wanted.groups.iter().map(group).collect())
}
