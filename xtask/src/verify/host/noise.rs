//! `torch_randn.json`: the noise that a seed draws.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use gr00t_host::noise::torch_randn;
use serde::Deserialize;
use serde_json::Value;

use super::json;
use crate::verify::report::Row;

/// The file's name.
pub(super) const FILE: &str = "torch_randn.json";

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

/// One seed; every other key is a draw, named by dtype and shape: `f32_16x32`.
#[derive(Deserialize)]
struct Case {
    seed: u64,
    #[serde(flatten)]
    draws: BTreeMap<String, Value>,
}

/// One row per seed and draw: bit-equal values.
pub(super) fn rows(path: &Path) -> Result<Vec<Row>> {
    let file: File = json::read(path)?;
    let mut rows = Vec::new();
    for case in &file.cases {
        for (key, values) in &case.draws {
            let name = format!("noise seed {} {key}", case.seed);
            rows.push(match key.strip_prefix("f32_") {
                Some(shape) => draw(&name, case.seed, shape, values)
                    .unwrap_or_else(|error| Row::fail(&name, format!("{error:#}"))),
                None => Row::info(&name, "not compared: noise is drawn in f32 here"),
            });
        }
    }
    Ok(rows)
}

fn draw(name: &str, seed: u64, shape: &str, values: &Value) -> Result<Row> {
    let dims: Vec<usize> = shape
        .split('x')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("shape {shape}"))?;
    let expected: Vec<f32> = Vec::deserialize(values).context("values")?;
    let count = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    if count != Some(expected.len()) {
        return Err(anyhow!("{} values for shape {shape}", expected.len()));
    }
    let got = torch_randn(seed, expected.len());
    let equal = got.iter().zip(&expected).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    Ok(Row::equal(name, equal, expected.len()))
}
