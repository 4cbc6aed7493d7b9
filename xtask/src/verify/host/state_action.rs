//! `state_action.json`: per data config, state in and out in both precisions, actions in and out.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use gr00t_host::action::ActionTransform;
use gr00t_host::embodiment::{DataConfig, EmbodimentMetadata, KeySpec, NormalizationMode};
use gr00t_host::observation::Values;
use gr00t_host::state::StateTransform;
use serde::Deserialize;

use super::data_config::{self, UpstreamConfig};
use super::json;
use crate::verify::figures::{Exactness, judge_equal};
use crate::verify::report::Row;

/// The file's name.
pub(super) const FILE: &str = "state_action.json";

/// Projector slots of N1.5.
const SLOTS: usize = 32;

#[derive(Deserialize)]
struct Case {
    metadata: EmbodimentMetadata,
    embodiment_tag: String,
    data_config: UpstreamConfig,
    float32: Option<StateCase>,
    float64: Option<StateCase>,
    /// `[horizon][max_action_dim]`, the model's output.
    action_in: Vec<Vec<f32>>,
    /// `action.<key>` → `[horizon][dim]`.
    action_out: BTreeMap<String, Vec<Vec<f64>>>,
    action_out_dtype: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct StateCase {
    /// Key → one row.
    state_in: BTreeMap<String, Vec<Vec<f64>>>,
    state_dtype_out: String,
    /// One row of the model's width.
    state_out: Vec<Vec<f64>>,
    state_mask_true: usize,
    embodiment_id: usize,
}

/// Rows per data config: its values, states, actions.
pub(super) fn rows(path: &Path) -> Result<Vec<Row>> {
    let file: BTreeMap<String, serde_json::Value> = json::read(path)?;
    let mut rows = Vec::new();
    for (name, value) in &file {
        match Case::deserialize(value).with_context(|| format!("{FILE}: {name}")) {
            Ok(case) => rows.extend(case_rows(name, &case)),
            Err(error) => rows.push(Row::fail(name, format!("{error:#}"))),
        }
    }
    Ok(rows)
}

fn case_rows(name: &str, case: &Case) -> Vec<Row> {
    let mut rows = Vec::new();
    let (config, row) = match data_config::chosen(name, &case.embodiment_tag, &case.data_config) {
        Ok(chosen) => chosen,
        Err(error) => return vec![Row::fail(format!("{name} config"), format!("{error:#}"))],
    };
    rows.push(row);
    let precisions = [("float32", &case.float32), ("float64", &case.float64)];
    for (precision, state) in precisions {
        let row_name = format!("{name} state {precision}");
        rows.push(match state {
            Some(state) => state_row(&row_name, &config, &case.metadata, precision, state)
                .unwrap_or_else(|error| Row::fail(&row_name, format!("{error:#}"))),
            None => Row::fail(&row_name, "no expectation in the file"),
        });
    }
    match actions(name, &config, case) {
        Ok(more) => rows.extend(more),
        Err(error) => rows.push(Row::fail(format!("{name} actions"), format!("{error:#}"))),
    }
    rows
}

fn state_row(
    name: &str,
    config: &DataConfig,
    metadata: &EmbodimentMetadata,
    precision: &str,
    case: &StateCase,
) -> Result<Row> {
    let [expected] = case.state_out.as_slice() else {
        bail!("{} expected rows, wanted 1", case.state_out.len())
    };
    let mut state = BTreeMap::new();
    for (key, rows) in &case.state_in {
        let [row] = rows.as_slice() else { bail!("{} rows of {key}, wanted 1", rows.len()) };
        let values = match precision {
            "float32" => Values::F32(row.iter().map(|&v| v as f32).collect()),
            _ => Values::F64(row.clone()),
        };
        state.insert(key.clone(), values);
    }
    let got = StateTransform::new(config, metadata, expected.len())?.apply(&state)?;
    let (dtype, exact): (_, Vec<f64>) = match &got.exact {
        Values::F32(v) => ("torch.float32", v.iter().map(|&x| f64::from(x)).collect()),
        Values::F64(v) => ("torch.float64", v.clone()),
    };
    if dtype != case.state_dtype_out {
        bail!("{dtype} out, wanted {}", case.state_dtype_out);
    }
    if got.dim() != case.state_mask_true {
        bail!("{} state dims, wanted {}", got.dim(), case.state_mask_true);
    }
    let slot = config.embodiment.resolve_slot(config.embodiment_id, SLOTS)?;
    if slot != case.embodiment_id {
        bail!("embodiment slot {slot}, wanted {}", case.embodiment_id);
    }
    if got.values.len() != expected.len() {
        bail!("{} values, wanted {}", got.values.len(), expected.len());
    }
    let mut exact = exact;
    exact.resize(expected.len(), 0.0);
    let rounded: Vec<f64> = got.values.iter().map(|&v| f64::from(v)).collect();
    let exactness = match (transcendental(&config.state_keys), dtype) {
        (false, _) => Exactness::Equal,
        (true, "torch.float32") => Exactness::LibmF32,
        (true, _) => Exactness::LibmF64,
    };
    // What the model reads must be the same values, rounded once.
    if exact.iter().zip(&rounded).any(|(exact, rounded)| f64::from(*exact as f32) != *rounded) {
        bail!("the rounded values are not those of the exact ones");
    }
    Ok(judge_equal(name, &exact, expected, exactness))
}

/// Whether any of the keys goes through sines, cosines or arc tangents.
pub(in crate::verify) fn transcendental(keys: &[KeySpec]) -> bool {
    keys.iter().any(|k| k.mode == NormalizationMode::SinCos || k.rotation.is_some())
}

fn actions(name: &str, config: &DataConfig, case: &Case) -> Result<Vec<Row>> {
    let width = case.action_in.first().map(Vec::len).ok_or_else(|| anyhow!("action_in is empty"))?;
    if case.action_in.iter().any(|row| row.len() != width) {
        bail!("action_in has rows of several lengths");
    }
    let chunk = ActionTransform::new(config, &case.metadata, width)?
        .apply(&case.action_in.concat(), case.action_in.len())?;
    let mut rows = Vec::new();
    for (key, expected) in &case.action_out {
        let row_name = format!("{name} {key}");
        let Some(group) = chunk.group(key.trim_start_matches("action.")) else {
            rows.push(Row::fail(row_name, "not produced"));
            continue;
        };
        if case.action_out_dtype.get(key).map(String::as_str) != Some("float32") {
            rows.push(Row::fail(row_name, "float32 is produced, another dtype expected"));
            continue;
        }
        let shape_fits = expected.len() == chunk.horizon && expected.iter().all(|row| row.len() == group.dim);
        if !shape_fits {
            rows.push(Row::fail(row_name, format!("[{}, {}] produced", chunk.horizon, group.dim)));
            continue;
        }
        let expected = expected.concat();
        let keys: Vec<KeySpec> = config.action_keys.iter().filter(|k| k.key == group.key).cloned().collect();
        let exactness = if transcendental(&keys) { Exactness::LibmF32 } else { Exactness::Equal };
        let got: Vec<f64> = group.values.iter().map(|&v| f64::from(v)).collect();
        rows.push(judge_equal(&row_name, &got, &expected, exactness));
    }
    for group in &chunk.groups {
        if !case.action_out.contains_key(&format!("action.{}", group.key)) {
            rows.push(Row::fail(format!("{name} action.{}", group.key), "produced, not expected"));
        }
    }
    Ok(rows)
}
