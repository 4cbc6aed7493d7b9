//! Compares every stage of a run of the model with a golden file while the run goes on.

use std::collections::BTreeSet;

use super::figures::{Gate, Grading, judge};
use super::golden::Golden;
use super::report::Row;

/// Largest difference of the model's output, the figure that a robot feels.
const ACTION_PRED_MAX_ABS: f64 = 1e-4;

/// Keys of a golden file: the model's inputs, whole stages, chosen rows of stages, and which rows those are.
const INPUT: &str = "in.";
pub(super) const WHOLE: &str = "out.";
pub(super) const ROWS: &str = "rows8.";
const ROW_NUMBERS: &str = "rows.";

/// A stage that a golden file may lack, and the stage that holds the same tensor in N1.5.
const SAME: (&str, &str) = ("llm.norm", "backbone.features");

/// The output, and the key under which a golden file keeps the same computed in float64.
const OUTPUT: &str = "action_pred";
const OUTPUT_F64: &str = "action_pred_f64_as_f32";

/// Whether a device's result of this stage counts: what leaves a part of the model. The stages between are shown.
pub(crate) fn is_gated_on_devices(name: &str) -> bool {
    matches!(name, "vision.mlp1" | "backbone.features" | "adapter.out" | OUTPUT) || name.ends_with(".dit_out")
}

/// The rows of a case's stages so far.
#[derive(Debug)]
pub(crate) struct StageJudge<'a> {
    golden: &'a Golden,
    grading: Grading,
    judged: BTreeSet<String>,
    rows: Vec<Row>,
}

impl<'a> StageJudge<'a> {
    /// Nothing judged yet.
    pub(crate) fn new(golden: &'a Golden, grading: Grading) -> Self {
        Self { golden, grading, judged: BTreeSet::new(), rows: Vec::new() }
    }

    /// Judges one stage, `[rows, width]` row-major.
    pub(crate) fn stage(&mut self, name: &str, width: usize, values: &[f32]) {
        let mut keys = vec![format!("{WHOLE}{name}"), format!("{ROWS}{name}")];
        if name == OUTPUT {
            keys.push(format!("{WHOLE}{OUTPUT_F64}"));
        }
        let mut found = false;
        for key in keys.into_iter().filter(|key| self.golden.get(key).is_some()) {
            found = true;
            let shown = if key.ends_with(OUTPUT_F64) { OUTPUT_F64 } else { name };
            let row = self
                .compare(&key, name, width, values)
                .unwrap_or_else(|error| Row::fail(shown, format!("{error:#}")));
            self.rows.push(Row { name: shown.to_string(), ..row });
            self.judged.insert(key);
        }
        let same = name == SAME.0 && self.golden.get(&format!("{WHOLE}{}", SAME.1)).is_some();
        if !found && !same {
            self.rows.push(Row::fail(name, "not in the golden file"));
        }
    }

    /// A row of the caller's own.
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// All rows: those judged, then the golden stages that the model never produced and keys of no known kind.
    pub(crate) fn finish(mut self) -> Vec<Row> {
        for key in self.golden.names().filter(|key| !self.judged.contains(*key)) {
            if let Some(name) = key.strip_prefix(WHOLE).or_else(|| key.strip_prefix(ROWS)) {
                self.rows.push(Row::fail(name, "in the golden file, never produced by the model"));
            } else if !key.starts_with(INPUT) && !key.starts_with(ROW_NUMBERS) {
                self.rows.push(Row::fail(key, "a golden key of no known kind"));
            }
        }
        self.rows
    }

    fn compare(&self, key: &str, name: &str, width: usize, values: &[f32]) -> anyhow::Result<Row> {
        let (shape, expected) = self.golden.f32(key)?;
        if shape.last() != Some(&width) {
            anyhow::bail!("width {width}, golden {shape:?}");
        }
        let selected;
        let got = if key.starts_with(ROWS) {
            selected = self.selected_rows(name, shape, width, values)?;
            &selected[..]
        } else {
            values
        };
        if got.len() != expected.len() {
            anyhow::bail!("{} rows of {width}, golden {shape:?}", got.len() / width.max(1));
        }
        let gate = match self.grading {
            Grading::Reference if name == OUTPUT => Gate::MaxAbs(ACTION_PRED_MAX_ABS),
            Grading::Reference => Gate::Stage,
            Grading::Device { min_pcc } if is_gated_on_devices(name) => Gate::Pcc(min_pcc),
            Grading::Device { .. } => Gate::Shown,
        };
        Ok(judge(name, got, expected, gate))
    }

    /// The rows that the golden file keeps of stage `name`; of several views, the same ones of each.
    fn selected_rows(
        &self,
        name: &str,
        shape: &[usize],
        width: usize,
        values: &[f32],
    ) -> anyhow::Result<Vec<f32>> {
        let group = match name.split('.').next() {
            Some("vision") => "vision",
            Some("llm" | "adapter" | "backbone") => "llm",
            _ => "dit",
        };
        let (_, numbers) = self.golden.i64(&format!("{ROW_NUMBERS}{group}"))?;
        let blocks = match shape {
            [blocks @ .., rows, _] if *rows == numbers.len() => blocks.iter().product::<usize>(),
            _ => anyhow::bail!("golden {shape:?}, but {ROW_NUMBERS}{group} lists {} rows", numbers.len()),
        };
        let rows: Vec<&[f32]> = values.chunks_exact(width.max(1)).collect();
        if blocks == 0 || !rows.len().is_multiple_of(blocks) {
            anyhow::bail!("{} rows cannot be {blocks} equal blocks as in golden {shape:?}", rows.len());
        }
        let mut selected = Vec::new();
        for block in rows.chunks_exact((rows.len() / blocks).max(1)) {
            for &number in numbers {
                let row = usize::try_from(number).ok().and_then(|n| block.get(n));
                let row = row.ok_or_else(|| {
                    anyhow::anyhow!("{ROW_NUMBERS}{group} lists row {number} of {}", block.len())
                })?;
                selected.extend_from_slice(row);
            }
        }
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Data, Tensor};
    use super::super::report::Verdict;
    use super::*;

    fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
        Tensor { shape: shape.to_vec(), data: Data::F32(values.to_vec()) }
    }

    fn verdicts(golden: &Golden, stages: &[(&str, usize, &[f32])]) -> Vec<(String, Verdict)> {
        let mut judge = StageJudge::new(golden, Grading::Reference);
        for (name, width, values) in stages {
            judge.stage(name, *width, values);
        }
        judge.finish().into_iter().map(|r| (r.name, r.verdict)).collect()
    }

    #[test]
    fn equal_stages_pass() {
        let golden = Golden::from_tensors([("out.vision.mlp1", f32s(&[1, 2, 2], &[1.0, 2.0, 3.0, 5.0]))]);
        let got = verdicts(&golden, &[("vision.mlp1", 2, &[1.0, 2.0, 3.0, 5.0])]);
        assert_eq!(got, [("vision.mlp1".to_string(), Verdict::Pass)]);
    }

    #[test]
    fn a_golden_stage_that_was_never_produced_fails() {
        let golden = Golden::from_tensors([("out.vision.mlp1", f32s(&[1, 1], &[1.0]))]);
        assert_eq!(verdicts(&golden, &[]), [("vision.mlp1".to_string(), Verdict::Fail)]);
    }

    #[test]
    fn a_stage_without_a_golden_value_fails() {
        let golden = Golden::from_tensors([]);
        let got = verdicts(&golden, &[("adapter.out", 1, &[1.0])]);
        assert_eq!(got, [("adapter.out".to_string(), Verdict::Fail)]);
    }

    #[test]
    fn an_unknown_golden_key_fails() {
        let golden = Golden::from_tensors([("ouT.x", f32s(&[1], &[1.0]))]);
        assert_eq!(verdicts(&golden, &[]), [("ouT.x".to_string(), Verdict::Fail)]);
    }

    #[test]
    fn nan_on_either_side_fails() {
        let golden = Golden::from_tensors([("out.llm.norm", f32s(&[1, 3], &[1.0, f32::NAN, 2.0]))]);
        let got = verdicts(&golden, &[("llm.norm", 3, &[1.0, 1.5, 2.0])]);
        assert_eq!(got[0].1, Verdict::Fail);
        let golden = Golden::from_tensors([("out.llm.norm", f32s(&[1, 3], &[1.0, 1.5, 2.0]))]);
        let got = verdicts(&golden, &[("llm.norm", 3, &[1.0, f32::NAN, 2.0])]);
        assert_eq!(got[0].1, Verdict::Fail);
    }

    #[test]
    fn chosen_rows_are_taken_of_every_view() {
        let rows = Tensor { shape: vec![2], data: Data::I64(vec![0, 2]) };
        let golden = Golden::from_tensors([
            ("rows.vision", rows),
            ("rows8.vision.layer.0", f32s(&[2, 2, 1], &[0.0, 2.0, 10.0, 12.0])),
        ]);
        let values = [0.0, 1.0, 2.0, 10.0, 11.0, 12.0];
        assert_eq!(verdicts(&golden, &[("vision.layer.0", 1, &values)])[0].1, Verdict::Pass);
    }

    #[test]
    fn a_row_number_outside_the_stage_fails() {
        let rows = Tensor { shape: vec![1], data: Data::I64(vec![9]) };
        let golden = Golden::from_tensors([("rows.llm", rows), ("rows8.llm.layer.0", f32s(&[1, 1], &[0.0]))]);
        assert_eq!(verdicts(&golden, &[("llm.layer.0", 1, &[0.0, 1.0])])[0].1, Verdict::Fail);
    }

    #[test]
    fn another_shape_fails() {
        let golden = Golden::from_tensors([("out.llm.norm", f32s(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]))]);
        assert_eq!(verdicts(&golden, &[("llm.norm", 4, &[1.0, 2.0, 3.0, 4.0])])[0].1, Verdict::Fail);
        assert_eq!(verdicts(&golden, &[("llm.norm", 2, &[1.0, 2.0])])[0].1, Verdict::Fail);
    }
}
