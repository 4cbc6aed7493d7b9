//! `gr00t-serve smoke`: posts the server's demo and judges the answer.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gr00t_host::metrics::compare;
use serde_json::{Map, Value, json};

use super::client::Client;

/// A server that cannot answer within this is broken.
const ANSWER_TIME: Duration = Duration::from_mins(5);
/// Gates where the server names none.
const PCC_MIN: f64 = 0.999;
const MAX_ABS: f64 = 0.05;

/// Options of `smoke`.
#[derive(Debug, Clone, clap::Args)]
pub struct SmokeOptions {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub url: String,
    /// Seconds to wait for it to become ready
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
    /// Where the report goes too
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The report; its `pass` says whether all was well.
///
/// # Errors
/// If the server cannot be reached or answers otherwise than with the demo's form.
pub fn smoke(options: &SmokeOptions) -> Result<Value> {
    let client = Client::new(&options.url, ANSWER_TIME);
    client.wait(Duration::from_secs(options.wait))?;
    let info = client.get_ok("/info")?;
    let demo = client.get_ok("/demo")?;
    let request = demo.get("request").context("/demo has no request")?;
    let expected =
        demo.pointer("/expected/actions").and_then(Value::as_object).context("/demo expects nothing")?;
    let gate = |name: &str, default: f64| {
        demo.pointer("/expected/gates")
            .and_then(|gates| gates.get(name))
            .and_then(Value::as_f64)
            .unwrap_or(default)
    };
    let (pcc_min, max_abs) = (gate("pcc_min", PCC_MIN), gate("max_abs_of_still_group", MAX_ABS));

    let started = Instant::now();
    let first = post(&client, request)?;
    let wall_ms = started.elapsed().as_secs_f64() * 1e3;
    let second = post(&client, request)?;
    let mut problems = Vec::new();
    let mut groups = Map::new();
    let (mut all_got, mut all_wanted) = (Vec::new(), Vec::new());
    for (key, wanted) in expected {
        let got = numbers(first.pointer(&format!("/actions/{key}")).unwrap_or(&Value::Null));
        let wanted = numbers(wanted);
        let comparison = compare(&got, &wanted);
        // a group that hardly moves has no correlation worth the name
        let passes = comparison.pcc.is_some_and(|pcc| pcc >= pcc_min) || comparison.max_abs <= max_abs;
        if !passes {
            problems.push(format!("{key}: PCC {:?}, max|d| {}", comparison.pcc, comparison.max_abs));
        }
        groups.insert(
            key.clone(),
            json!({ "pcc": comparison.pcc, "max_abs": comparison.max_abs, "pass": passes }),
        );
        all_got.extend(got);
        all_wanted.extend(wanted);
    }
    let all = compare(&all_got, &all_wanted);
    if !all.pcc.is_some_and(|pcc| pcc >= pcc_min) {
        problems.push(format!("actions: PCC {:?}, wanted at least {pcc_min}", all.pcc));
    }
    let repeated = first["actions"] == second["actions"];
    if !repeated {
        problems.push("the same request gave other actions".into());
    }
    let other = post(&client, &with_seed(request, 1))?;
    let seed_path = other["actions"] != first["actions"] && other["seed"] == 1;
    if !seed_path {
        problems.push("another seed gave the same actions".into());
    }
    let report = json!({
        "pass": problems.is_empty(), "problems": problems, "url": options.url, "model": info["model"],
        "actions": { "pcc": all.pcc, "max_abs": all.max_abs }, "groups": groups,
        "repeatable": repeated, "seed_path_ok": seed_path, "wall_ms": wall_ms,
        "timing_ms": [first["timing_ms"], second["timing_ms"]],
    });
    if let Some(file) = &options.out {
        std::fs::write(file, format!("{report:#}\n")).with_context(|| file.display().to_string())?;
    }
    Ok(report)
}

fn post(client: &Client, request: &Value) -> Result<Value> {
    match client.post("/predict", &serde_json::to_vec(request)?)? {
        (200, body) => Ok(body),
        (status, body) => anyhow::bail!("POST /predict: {status} {body}"),
    }
}

fn with_seed(request: &Value, seed: u64) -> Value {
    let mut request = request.clone();
    if let Some(fields) = request.as_object_mut() {
        fields.remove("noise");
        fields.insert("seed".into(), seed.into());
    }
    request
}

/// Every number below `value`, in order.
fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Number(number) => number.as_f64().map(|x| x as f32).into_iter().collect(),
        _ => Vec::new(),
    }
}
