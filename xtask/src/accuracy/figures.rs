//! Figures of one policy over several observations: stages, joint groups, times.

use std::time::Duration;

use anyhow::{Result, bail};
use gr00t_host::ModelInputs;
use gr00t_host::metrics::{Gate, compare};
use gr00t_model::DtypePolicy;
use serde::Serialize;

use super::observations::Case;
use crate::quantile::sorted;
use crate::subject::Subject;
use crate::verify::is_gated_on_devices;

/// Every stage of one run.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Name and values, in the order of the run.
    stages: Vec<(String, Vec<f32>)>,
    action_pred: Vec<f32>,
}

impl Recorded {
    /// Runs `subject` and keeps all stages.
    pub(super) fn of(subject: &Subject, inputs: &ModelInputs) -> Result<Self> {
        let mut stages = Vec::new();
        let mut keep =
            |name: &str, _: usize, values: &[f32]| stages.push((name.to_string(), values.to_vec()));
        let action_pred = subject.observe(inputs, &mut keep)?;
        Ok(Self { stages, action_pred })
    }
}

/// What was measured, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) weights: String,
    pub(super) observations: Vec<String>,
    pub(super) steps: usize,
    pub(super) policies: Vec<PolicyFigures>,
}

/// One policy.
#[derive(Debug, Serialize)]
pub(super) struct PolicyFigures {
    pub(super) policy: &'static str,
    #[serde(skip)]
    min_pcc: f64,
    pub(super) ran_on: String,
    /// Bytes of all weights on the device, per part.
    pub(super) parts: Vec<PartBytes>,
    /// Times of single predictions without the host's share, in the order of the runs.
    pub(super) predict_ms: Vec<f64>,
    pub(super) stages: Vec<StageFigures>,
    pub(super) groups: Vec<GroupFigures>,
}

/// Weights of one part of the model.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PartBytes {
    pub(super) part: &'static str,
    /// Data type of its matmul weights.
    pub(super) dtype: String,
    /// All its weights; norms, biases and tables are fp32.
    pub(super) bytes: usize,
}

/// One stage; each figure is the worst of all observations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StageFigures {
    pub(super) name: String,
    pub(super) gated: bool,
    /// Least correlation; absent where all observations gave constants.
    pub(super) pcc: Option<f64>,
    /// Whether every observation correlates as the policy must, and none gives constants where the reference does not.
    pub(super) passed: bool,
    pub(super) max_abs: f64,
    pub(super) rel_rms: f64,
}

/// One action key in its physical unit, over all observations and time steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct GroupFigures {
    pub(super) key: String,
    pub(super) dim: usize,
    pub(super) max_abs: f64,
    /// Root mean square of the differences.
    pub(super) rms: f64,
    /// Widest `max - min` of the key's statistics.
    pub(super) range: Option<f64>,
    #[serde(skip)]
    count: usize,
}

impl PolicyFigures {
    /// Nothing measured yet.
    pub(super) fn new(policy: DtypePolicy, ran_on: String) -> Self {
        Self {
            policy: policy.name(),
            min_pcc: policy.min_pcc(),
            ran_on,
            parts: Vec::new(),
            predict_ms: Vec::new(),
            stages: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Adds one observation's run `got`, held against the reference's `wanted`.
    ///
    /// # Errors
    /// If a stage is missing on either side, cannot be compared, or actions cannot be decoded.
    pub(super) fn add(&mut self, case: &Case, got: &Recorded, wanted: &Recorded) -> Result<()> {
        for (name, values) in &got.stages {
            let Some((_, expected)) = wanted.stages.iter().find(|(known, _)| known == name) else {
                bail!("stage {name} is not one of the reference's");
            };
            self.add_stage(name, values, expected)?;
        }
        for (name, _) in wanted.stages.iter().filter(|(name, _)| is_gated_on_devices(name)) {
            if !got.stages.iter().any(|(known, _)| known == name) {
                bail!("stage {name} was never produced");
            }
        }
        let decoder = &case.robot.decoder;
        let (got, wanted) = (decoder.decode(&got.action_pred)?, decoder.decode(&wanted.action_pred)?);
        for (group, expected) in got.groups.iter().zip(&wanted.groups) {
            self.add_group(&group.key, group.dim, &group.values, &expected.values, case.range(&group.key));
        }
        Ok(())
    }

    fn add_stage(&mut self, name: &str, got: &[f32], wanted: &[f32]) -> Result<()> {
        let figures = compare(got, wanted);
        if !figures.max_abs.is_finite() {
            bail!("stage {name}: {} values, wanted {}, all finite", got.len(), wanted.len());
        }
        let new = StageFigures {
            name: name.to_string(),
            gated: is_gated_on_devices(name),
            pcc: figures.pcc,
            // against a constant nothing correlates, so that finite values are all that is asked for
            passed: figures.passes(&Gate { min_pcc: self.min_pcc, max_abs: f64::MAX }),
            max_abs: figures.max_abs,
            rel_rms: figures.rel_rms,
        };
        match self.stages.iter_mut().find(|stage| stage.name == name) {
            Some(old) => {
                old.pcc = [old.pcc, new.pcc].into_iter().flatten().reduce(f64::min);
                old.passed &= new.passed;
                old.max_abs = old.max_abs.max(new.max_abs);
                old.rel_rms = old.rel_rms.max(new.rel_rms);
            }
            None => self.stages.push(new),
        }
        Ok(())
    }

    fn add_group(&mut self, key: &str, dim: usize, got: &[f32], wanted: &[f32], range: Option<f64>) {
        let differences = got.iter().zip(wanted).map(|(g, w)| (f64::from(*g) - f64::from(*w)).abs());
        let (mut max_abs, mut squares) = (0.0, 0.0);
        for difference in differences {
            max_abs = f64::max(max_abs, difference);
            squares += difference * difference;
        }
        let count = got.len().min(wanted.len());
        if let Some(old) = self.groups.iter_mut().find(|group| group.key == key) {
            let all = old.count + count;
            old.rms = ((old.rms.powi(2) * old.count as f64 + squares) / all.max(1) as f64).sqrt();
            old.count = all;
            old.max_abs = old.max_abs.max(max_abs);
        } else {
            let rms = (squares / count.max(1) as f64).sqrt();
            self.groups.push(GroupFigures { key: key.into(), dim, max_abs, rms, range, count });
        }
    }

    /// Adds the time of one prediction.
    pub(super) fn add_time(&mut self, elapsed: Option<Duration>) {
        self.predict_ms.extend(elapsed.map(|time| time.as_secs_f64() * 1e3));
    }

    /// Bytes of all weights on the device.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The median time of a prediction.
    pub(super) fn median_ms(&self) -> Option<f64> {
        let times = sorted(self.predict_ms.iter().copied());
        times.get(times.len() / 2).copied()
    }

    /// The first and the last of the middle half of the times.
    pub(super) fn middle_half_ms(&self) -> Option<[f64; 2]> {
        let times = sorted(self.predict_ms.iter().copied());
        let quarter = times.len() / 4;
        Some([*times.get(quarter)?, *times.iter().rev().nth(quarter)?])
    }

    /// The figures of `name`; of `stepK.…` stages the worst of all steps, where `name` is without the step.
    pub(super) fn worst(&self, name: &str) -> Option<StageFigures> {
        let of_a_step = |stage: &str| {
            stage
                .strip_prefix("step")
                .and_then(|rest| rest.split_once('.'))
                .is_some_and(|(_, own)| own == name)
        };
        let stages = self.stages.iter().filter(|stage| stage.name == name || of_a_step(&stage.name));
        stages.cloned().reduce(|a, b| StageFigures {
            name: name.to_string(),
            gated: a.gated,
            pcc: [a.pcc, b.pcc].into_iter().flatten().reduce(f64::min),
            passed: a.passed && b.passed,
            max_abs: a.max_abs.max(b.max_abs),
            rel_rms: a.rel_rms.max(b.rel_rms),
        })
    }

    /// What is wrong, if a gated stage correlates less than the policy must, or not at all.
    pub(super) fn below_gate(&self) -> Option<String> {
        let (policy, wanted) = (self.policy, self.min_pcc);
        let failed = self.stages.iter().filter(|stage| stage.gated && !stage.passed);
        // One that fails with a correlation that is high enough gave constants for one observation, and the correlation is of others.
        let correlation = |stage: &StageFigures| stage.pcc.filter(|pcc| *pcc < wanted);
        let below = |stage: &StageFigures| correlation(stage).unwrap_or(f64::NEG_INFINITY);
        let worst = failed.min_by(|a, b| below(a).total_cmp(&below(b)))?;
        Some(match correlation(worst) {
            Some(pcc) => format!("{policy}: {} has PCC {pcc}, wanted {wanted}", worst.name),
            None => format!("{policy}: {} is constant, wanted PCC {wanted}", worst.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> PolicyFigures {
        PolicyFigures::new(DtypePolicy::Bf16, "a device".into())
    }

    #[test]
    fn the_worst_of_all_observations_and_steps_counts() {
        let mut figures = figures();
        figures.add_stage("step0.dit_out", &[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        figures.add_stage("step0.dit_out", &[1.0, 2.0, 3.5], &[1.0, 2.0, 3.0]).unwrap();
        figures.add_stage("step1.dit_out", &[1.0, 2.25, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(figures.stages.len(), 2);
        let worst = figures.worst("dit_out").unwrap();
        assert_eq!(worst.max_abs, 0.5);
        assert_eq!(worst.pcc, figures.stages[1].pcc);
        assert!(worst.pcc < figures.stages[0].pcc);
        assert!(figures.below_gate().unwrap().contains("step1.dit_out has PCC 0.98"));
    }

    #[test]
    fn constants_fail_where_the_reference_has_none() {
        let mut figures = figures();
        figures.add_stage("action_pred", &[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        figures.add_stage("backbone.features", &[2.0; 3], &[2.0; 3]).unwrap();
        assert_eq!(figures.below_gate(), None);
        figures.add_stage("action_pred", &[0.0; 3], &[1.0, 2.0, 3.0]).unwrap();
        assert!(figures.below_gate().unwrap().contains("action_pred is constant"));
        assert!(!figures.worst("action_pred").unwrap().passed);
    }

    #[test]
    fn joints_add_up_over_observations() {
        let mut figures = figures();
        figures.add_group("arm", 1, &[1.0, 2.0], &[1.0, 1.0], Some(4.0));
        figures.add_group("arm", 1, &[0.0, 0.0], &[0.0, 0.0], Some(4.0));
        assert_eq!((figures.groups[0].max_abs, figures.groups[0].rms), (1.0, 0.5));
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        let mut figures = figures();
        assert!(figures.add_stage("x", &[1.0], &[1.0, 2.0]).is_err());
        assert!(figures.add_stage("x", &[f32::NAN], &[1.0]).is_err());
    }
}
