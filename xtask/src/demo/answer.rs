//! An answer of `/predict`, and how a terminal shows it.

use anyhow::{Context, Result};
use gr00t_host::action::ActionGroup;
use gr00t_host::{ActionChunk, OneLine};
use serde_json::Value;

use crate::say::say;

/// Heights of a value among its group's.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Actions, what the fp32 reference gives for the same request, and the rest of the answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) chunk: ActionChunk,
    pub(super) expected: ActionChunk,
    pub(super) instruction: &'a str,
    timing_ms: &'a Value,
}

impl<'a> Answer<'a> {
    /// Reads a reply beside the actions that are expected.
    ///
    /// # Errors
    /// If either has not the form of the server's answers.
    pub(super) fn read(reply: &'a Value, expected: &Value) -> Result<Self> {
        let keys: Vec<&str> =
            reply["action_keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        Ok(Self {
            chunk: chunk(&keys, &reply["actions"]).context("/predict")?,
            expected: chunk(&keys, expected).context("/demo")?,
            instruction: reply["instruction"].as_str().unwrap_or_default(),
            timing_ms: &reply["timing_ms"],
        })
    }

    /// What ran, how it was judged, and how long it took.
    pub(super) fn print_head(&self, info: &Value, judged: &Value) {
        let text = |value: &Value| OneLine(value.as_str().unwrap_or("unknown")).to_string();
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        say!("weights      {}", text(&info["weights"]["source"]));
        say!("ran on       {}, {}", text(&info["device_facts"]["description"]), text(&info["policy"]));
        say!("data config  {}, embodiment {}", text(&info["data_config"]), text(&info["embodiment"]));
        say!("prompt       {}", OneLine(self.instruction));
        let actions = &judged["actions"];
        say!(
            "judged       {}: PCC {:.6}, max|d| {:.1e} to the fp32 reference",
            if judged["pass"] == Value::Bool(true) { "pass" } else { "FAIL" },
            number(&actions["pcc"]),
            number(&actions["max_abs"])
        );
        let stages = self.timing_ms["stages"].as_object().into_iter().flatten();
        let stages: Vec<String> = stages.map(|(name, ms)| format!("{name} {:.1}", number(ms))).collect();
        say!("took         {:.1} ms in the server ({})", number(&self.timing_ms["total"]), stages.join(", "));
        if info["weights"]["kind"] == "synthetic" {
            say!("note         the weights are made up: the motion means nothing");
        }
    }

    /// One table per joint group, one line per joint: its first value, its course, its last value.
    pub(super) fn print_actions(&self) {
        let horizon = self.chunk.horizon;
        for group in &self.chunk.groups {
            say!("\n{} [{horizon}, {}]", OneLine(&group.key), group.dim);
            for joint in 0..group.dim {
                let values: Vec<f32> = group.values.iter().skip(joint).step_by(group.dim).copied().collect();
                let (first, last) = (values.first().unwrap_or(&0.0), values.last().unwrap_or(&0.0));
                say!("{joint:>4} {first:>9.4}  {}  {last:>9.4}", course(&values, &group.values));
            }
        }
    }
}

/// `[horizon][dim]` per key, as a chunk.
fn chunk(keys: &[&str], actions: &Value) -> Result<ActionChunk> {
    let mut groups = Vec::with_capacity(keys.len());
    let mut horizon = 0;
    for key in keys {
        let steps: Vec<Vec<f32>> =
            serde_json::from_value(actions[*key].clone()).with_context(|| format!("actions of {key}"))?;
        horizon = steps.len();
        let dim = steps.first().map_or(0, Vec::len);
        groups.push(ActionGroup { key: (*key).to_owned(), dim, values: steps.concat() });
    }
    Ok(ActionChunk { horizon, groups, out_of_range: 0 })
}

/// `values` as a row of blocks, between the least and the greatest of `all`.
fn course(values: &[f32], all: &[f32]) -> String {
    let low = all.iter().copied().fold(f32::INFINITY, f32::min);
    let high = all.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let top = LEVELS.len() - 1;
    let level = |value: &f32| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        LEVELS[((share * top as f32).round() as usize).min(top)]
    };
    values.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_becomes_a_chunk_in_the_order_of_its_keys() {
        let reply = json!({
            "action_keys": ["b", "a"], "actions": { "a": [[1.0], [2.0]], "b": [[3.0, 4.0], [5.0, 6.0]] },
        });
        let answer = Answer::read(&reply, &reply["actions"]).unwrap();
        assert_eq!(answer.chunk.horizon, 2);
        assert_eq!(answer.chunk.groups[0].values, [3.0, 4.0, 5.0, 6.0]);
        assert_eq!((answer.chunk.groups[1].key.as_str(), answer.chunk.groups[1].dim), ("a", 1));
        assert!(Answer::read(&reply, &json!({ "a": [[1.0]] })).is_err());
    }

    #[test]
    fn a_course_reaches_from_the_lowest_to_the_highest_block() {
        assert_eq!(course(&[0.0, 0.5, 1.0], &[0.0, 1.0]), "▁▅█");
        assert_eq!(course(&[2.0], &[2.0, 2.0]).chars().count(), 1);
    }
}
