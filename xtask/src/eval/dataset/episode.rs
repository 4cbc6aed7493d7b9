//! One episode: states, recorded actions, instruction and time of every step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use gr00t_host::embodiment::DataConfig;
use gr00t_host::observation::Values;

use super::meta::{Modality, Slice, Task};
use super::table::{self, Column, Numbers};

/// What the parquet file calls the time of a step, in seconds.
const TIME: &str = "timestamp";

/// An episode, with the keys of one data config.
#[derive(Debug)]
pub(in crate::eval) struct Episode {
    /// The dataset's number of it.
    pub(in crate::eval) index: usize,
    timestamps: Vec<f64>,
    /// State key → one row per step.
    states: BTreeMap<String, Vec<Values>>,
    /// Action key → one row per step.
    actions: BTreeMap<String, Vec<Vec<f64>>>,
    instructions: Vec<String>,
}

impl Episode {
    /// Reads the parquet file at `path`.
    pub(super) fn read(
        path: &Path,
        index: usize,
        modality: &Modality,
        tasks: &[Task],
        config: &DataConfig,
    ) -> Result<Self> {
        let state_slices = slices("state", &modality.state, config.state_keys.iter().map(|k| &k.key))?;
        let action_slices = slices("action", &modality.action, config.action_keys.iter().map(|k| &k.key))?;
        let annotation = modality.annotation_column(&config.language_key)?;
        let mut names = BTreeSet::from([TIME.to_string(), annotation.to_string()]);
        names.extend(state_slices.iter().map(|(_, slice)| slice.state_column().to_string()));
        names.extend(action_slices.iter().map(|(_, slice)| slice.action_column().to_string()));
        let columns = table::columns(path, &names)?;
        let column = |name: &str| columns.get(name).with_context(|| format!("no column {name}"));

        let mut states = BTreeMap::new();
        for (key, slice) in state_slices {
            let rows =
                state_rows(column(slice.state_column())?, slice).with_context(|| format!("state {key}"))?;
            states.insert(key.to_string(), rows);
        }
        let mut actions = BTreeMap::new();
        for (key, slice) in action_slices {
            let column = column(slice.action_column())?;
            let rows = column.to_f64();
            let rows = rows.chunks_exact(column.width()).map(|row| Ok(slice.of(row)?.to_vec()));
            let rows = rows.collect::<Result<_>>().with_context(|| format!("action {key}"))?;
            actions.insert(key.to_string(), rows);
        }
        let instructions =
            instructions(column(annotation)?, tasks).with_context(|| annotation.to_string())?;
        Ok(Self { index, timestamps: column(TIME)?.to_f64(), states, actions, instructions })
    }

    /// Number of steps.
    pub(in crate::eval) fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Seconds since the begin of the video at `step`.
    pub(in crate::eval) fn timestamp(&self, step: usize) -> Option<f64> {
        self.timestamps.get(step).copied()
    }

    /// The state at `step` by key.
    pub(in crate::eval) fn state(&self, step: usize) -> BTreeMap<String, Values> {
        let at = |(key, rows): (&String, &Vec<Values>)| Some((key.clone(), rows.get(step)?.clone()));
        self.states.iter().filter_map(at).collect()
    }

    /// The state of `key` at `step`, if the data config has such a state.
    pub(in crate::eval) fn state_of(&self, key: &str, step: usize) -> Option<Vec<f64>> {
        Some(self.states.get(key)?.get(step)?.to_f64())
    }

    /// The recorded action of `key` at `step`.
    pub(in crate::eval) fn action_of(&self, key: &str, step: usize) -> Option<&[f64]> {
        Some(self.actions.get(key)?.get(step)?)
    }

    /// The instruction at `step`.
    pub(in crate::eval) fn instruction(&self, step: usize) -> Option<&str> {
        self.instructions.get(step).map(String::as_str)
    }
}

/// The parts of columns that `keys` are.
fn slices<'a>(
    what: &str,
    known: &'a BTreeMap<String, Slice>,
    keys: impl Iterator<Item = &'a String>,
) -> Result<Vec<(&'a str, &'a Slice)>> {
    keys.map(|key| {
        let slice = known.get(key).with_context(|| {
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            format!("modality.json has no {what} {key}, it has {}", known.join(", "))
        })?;
        Ok((key.as_str(), slice))
    })
    .collect()
}

/// Rows in the precision that they were recorded in, as upstream normalises them in it.
fn state_rows(column: &Column, slice: &Slice) -> Result<Vec<Values>> {
    if let Numbers::F32(numbers) = column.numbers() {
        let rows = numbers.chunks_exact(column.width());
        rows.map(|row| Ok(Values::F32(slice.of(row)?.to_vec()))).collect()
    } else {
        let numbers = column.to_f64();
        let rows = numbers.chunks_exact(column.width());
        rows.map(|row| Ok(Values::F64(slice.of(row)?.to_vec()))).collect()
    }
}

/// The texts of a column of task numbers.
fn instructions(column: &Column, tasks: &[Task]) -> Result<Vec<String>> {
    let text = |number: f64| {
        let task = tasks.iter().find(|task| task.task_index as f64 == number);
        task.map(|task| task.task.clone()).with_context(|| format!("task {number} is not in tasks.jsonl"))
    };
    let numbers = column.to_f64();
    numbers.chunks_exact(column.width()).filter_map(|row| row.first()).map(|&number| text(number)).collect()
}
