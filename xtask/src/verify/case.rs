//! A case folder: the model's inputs and weights, and what NVIDIA's code gives for every stage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_host::checkpoint::{Procedural, TensorSource};
use gr00t_host::{ModelConfig, ModelInputs, read_capped};
use serde::Deserialize;

use super::VerifyArgs;
use super::end_to_end;
use super::figures::Grading;
use super::golden::Golden;
use super::report::Row;
use super::stages::{ROWS, StageJudge, WHOLE};
use crate::full_size;
use crate::progress::Progress;
use crate::subject::{Load, Subject};

/// The file that makes a folder a case.
pub(super) const CASE_FILE: &str = "case.json";
/// The observation that a case may have beside its inputs.
const OBSERVATION_FILE: &str = "observation.json";

/// Largest `case.json` that is read.
const MAX_CASE_BYTES: u64 = 1 << 20;

/// `case.json`.
#[derive(Debug, Deserialize)]
struct CaseFile {
    weights: CaseWeights,
    /// `n1.5`, `mini`, or a `config.json`.
    config: String,
    eagle_config: Option<PathBuf>,
    embodiment_id: usize,
    views: usize,
    golden: PathBuf,
    observation: Option<PathBuf>,
    /// Euler steps, where they are not the config's.
    #[serde(alias = "steps", alias = "denoising_steps")]
    num_inference_timesteps: Option<usize>,
    #[serde(flatten)]
    other: BTreeMap<String, serde_json::Value>,
}

/// Where a case's weights come from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CaseWeights {
    Procedural { seed: u64 },
    File(PathBuf),
}

/// A case's model and inputs, for commands that judge otherwise.
#[derive(Debug)]
pub(crate) struct OpenedCase {
    /// Sizes, with the horizon of the inputs.
    pub(crate) config: ModelConfig,
    /// Weights.
    pub(crate) source: Arc<dyn TensorSource>,
    /// Inputs.
    pub(crate) inputs: ModelInputs,
    /// Denoising steps.
    pub(crate) steps: usize,
}

impl OpenedCase {
    /// Reads the case in `dir`.
    ///
    /// # Errors
    /// If the folder cannot be read as a case.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let case = CaseFile::read(dir)?;
        let golden = Golden::read(&dir.join(&case.golden))?;
        let (config, inputs) = inputs(dir, &case, &golden, model_config(dir, &case)?)?;
        let steps = steps(dir, &case, &golden, &config);
        Ok(Self { source: weights(dir, &case, &config)?, config, inputs, steps })
    }
}

/// Runs the case in `dir` through the model asked for and judges every stage.
///
/// # Errors
/// If the folder cannot be read as a case; what can be compared and differs is a failing row instead.
pub(super) fn rows(dir: &Path, args: &VerifyArgs, progress: &Arc<Progress>) -> Result<Vec<Row>> {
    let case = CaseFile::read(dir)?;
    let golden = Golden::read(&dir.join(&case.golden))?;
    let (config, inputs) = inputs(dir, &case, &golden, model_config(dir, &case)?)?;
    let mut rows = notes(&case, &golden);

    let steps = steps(dir, &case, &golden, &config);
    let source = weights(dir, &case, &config)?;
    let beside = dir.join(OBSERVATION_FILE);
    let observation = match &case.observation {
        Some(file) => Some(dir.join(file)),
        None => beside.is_file().then_some(beside),
    };
    let end_to_end = observation.map(|file| end_to_end::Check::read(&file, &config, &inputs)).transpose()?;
    if let Some(check) = &end_to_end {
        rows.extend(check.encode_rows(&inputs));
    }

    let _alone = full_size::alone(&config)?;
    let embodiment_id = inputs.embodiment_id;
    let load = Load { config: &config, source: &source, embodiment_id, steps, cache: None };
    let subject = Subject::load(args.model, &args.device, load, progress)?;
    let grading = grading(&subject);
    let mut judge = StageJudge::new(&golden, grading);
    let action_pred = run_judged(&subject, &inputs, &mut judge)?;
    rows.extend(judge.finish());

    if let Some(check) = end_to_end {
        // The same inputs give the same output, so a second run is needed only where encoding went wrong.
        let action_pred =
            if check.encodes_to(&inputs) { action_pred } else { subject.predict(check.inputs())?.0 };
        rows.extend(check.action_rows(&action_pred, grading));
    }
    Ok(rows)
}

/// How strictly `subject` is judged.
fn grading(subject: &Subject) -> Grading {
    subject.min_pcc().map_or(Grading::Reference, |min_pcc| Grading::Device { min_pcc })
}

/// Runs, hands every stage to `judge`, and gives `action_pred`. On a device what is returned comes from traces that keep no
/// stage; that watching changes nothing is a row of its own.
fn run_judged(subject: &Subject, inputs: &ModelInputs, judge: &mut StageJudge<'_>) -> Result<Vec<f32>> {
    let observed = subject.observe(inputs, &mut |name, width, values| judge.stage(name, width, values))?;
    if subject.min_pcc().is_none() {
        return Ok(observed);
    }
    let (replayed, _) = subject.predict(inputs)?;
    let equal = observed.iter().zip(&replayed).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    judge.add(Row::equal("observed run's bytes", equal, replayed.len()));
    Ok(replayed)
}

/// Whether the case in `dir` can be read and is not of the full size.
pub(super) fn is_small(dir: &Path) -> bool {
    let config = CaseFile::read(dir).and_then(|case| model_config(dir, &case));
    config.is_ok_and(|config| !full_size::is_full_size(&config))
}

impl CaseFile {
    fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(CASE_FILE);
        let text = read_capped(&path, MAX_CASE_BYTES)?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }

    /// Whether the case says its sizes itself. Then they are judged as they stand; a preset leaves horizon and steps to
    /// the golden file.
    fn has_own_config(&self, dir: &Path) -> bool {
        dir.join(&self.config).is_file()
    }
}

fn model_config(dir: &Path, case: &CaseFile) -> Result<ModelConfig> {
    let file = dir.join(&case.config);
    if case.has_own_config(dir) {
        let eagle = case.eagle_config.as_ref().map(|f| dir.join(f));
        return Ok(ModelConfig::from_files(file, eagle.as_deref())?);
    }
    if case.eagle_config.is_some() {
        bail!("{}: no such file, which {CASE_FILE} names beside an eagle_config", file.display());
    }
    Ok(ModelConfig::preset(&case.config)?)
}

fn weights(dir: &Path, case: &CaseFile, config: &ModelConfig) -> Result<Arc<dyn TensorSource>> {
    Ok(match &case.weights {
        CaseWeights::Procedural { seed } => Arc::new(Procedural::new(config, *seed)),
        CaseWeights::File(file) => crate::weights::open_of_case(&dir.join(file), config)?,
    })
}

/// The golden file's inputs, and the config with the horizon that they have.
fn inputs(
    dir: &Path,
    case: &CaseFile,
    golden: &Golden,
    config: ModelConfig,
) -> Result<(ModelConfig, ModelInputs)> {
    let (shape, pixels) = golden.f32("in.eagle_pixel_values")?;
    let [views, _, _, _] = *shape else { bail!("in.eagle_pixel_values is {shape:?}, wanted [V, C, H, W]") };
    if views != case.views {
        bail!("in.eagle_pixel_values has {views} views, {CASE_FILE} says {}", case.views);
    }
    let (shape, ids) = golden.i64("in.eagle_input_ids")?;
    if shape.first() != Some(&1) || shape.len() != 2 {
        bail!("in.eagle_input_ids is {shape:?}, wanted [1, S]: only a batch of one is judged");
    }
    let (_, mask) = golden.i64("in.eagle_attention_mask")?;
    if mask.len() != ids.len() || mask.iter().any(|&m| m != 1) {
        bail!("in.eagle_attention_mask is not all ones of length {}", ids.len());
    }
    let input_ids = ids.iter().map(|&id| u32::try_from(id)).collect::<Result<_, _>>().context("token ids")?;
    let (shape, state) = golden.f32("in.state")?;
    if shape.iter().rev().skip(1).any(|&n| n != 1) {
        bail!("in.state is {shape:?}, wanted [1, 1, dims]");
    }
    let (shape, noise) = golden.f32("in.noise")?;
    let [1, horizon, _] = *shape else { bail!("in.noise is {shape:?}, wanted [1, H, action_dim]") };
    let (_, embodiment) = golden.i64("in.embodiment_id")?;
    if embodiment != [case.embodiment_id as i64] {
        bail!("in.embodiment_id is {embodiment:?}, {CASE_FILE} says {}", case.embodiment_id);
    }
    let inputs = ModelInputs {
        pixel_values: pixels.to_vec(),
        views,
        input_ids,
        state: state.to_vec(),
        noise: noise.to_vec(),
        embodiment_id: case.embodiment_id,
    };
    let configured = config.gr00t.action_horizon;
    if horizon == configured {
        return Ok((config, inputs));
    }
    if case.has_own_config(dir) {
        bail!("in.noise has {horizon} time steps, {} says action_horizon {configured}", case.config);
    }
    Ok((config.with_action_horizon(horizon)?, inputs))
}

/// Euler steps of the case: what it says, else what its config says; of a preset, as many as the golden file has.
fn steps(dir: &Path, case: &CaseFile, golden: &Golden, config: &ModelConfig) -> usize {
    let configured = config.gr00t.action_head_cfg.num_inference_timesteps;
    let in_golden = || {
        let number = |name: &str| -> Option<usize> {
            let stage = name.strip_prefix(WHOLE).or_else(|| name.strip_prefix(ROWS))?;
            stage.strip_prefix("step")?.split('.').next()?.parse().ok()
        };
        golden.names().filter_map(number).max().map(|last| last.saturating_add(1))
    };
    match case.num_inference_timesteps {
        Some(steps) => steps,
        None if case.has_own_config(dir) => configured,
        None => in_golden().unwrap_or(configured),
    }
}

/// What of the case and the golden file is not used.
fn notes(case: &CaseFile, golden: &Golden) -> Vec<Row> {
    const USED: [&str; 6] = [
        "in.eagle_pixel_values",
        "in.eagle_input_ids",
        "in.eagle_attention_mask",
        "in.state",
        "in.noise",
        "in.embodiment_id",
    ];
    /// Only for the processor that tiles images, which a 224 x 224 input never is.
    const KNOWN_UNUSED: [&str; 1] = ["in.eagle_image_sizes"];
    let unused = golden
        .names()
        .filter(|n| n.starts_with("in.") && !USED.contains(n) && !KNOWN_UNUSED.contains(n))
        .map(|n| Row::info(n, "an input that the model does not read"));
    let unknown = case.other.keys().map(|key| Row::info(key, format!("not read from {CASE_FILE}")));
    unused.chain(unknown).collect()
}
