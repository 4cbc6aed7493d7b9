//! A receding-horizon control loop against a server over HTTP: predict 16 steps, execute the first 8, look again.
//!
//! The robot is a stand-in whose joints follow at once and whose cameras show the demo's picture. To embed the model in
//! the program instead, see `gr00t-model/examples/receding_horizon.rs`.
//!
//!     gr00t-serve --weights synthetic --config mini --port 8000
//!     cargo run -p gr00t-serve --example http_loop -- http://127.0.0.1:8000

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

/// Steps of each chunk that are executed before the next one is asked for.
const EXECUTED_STEPS: usize = 8;
/// Chunks that a run asks for.
const CHUNKS: u64 = 5;
/// A chunk that takes longer is of no use.
const ANSWER_TIME: Duration = Duration::from_mins(1);
/// Pause before a busy server is asked again, and how often it is.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
const BUSY_TRIES: usize = 20;

fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8000".into());
    run(&url)?;
    Ok(())
}

/// Control steps that were executed.
pub(crate) fn run(url: &str) -> Result<usize> {
    let server = Server::new(url);
    let demo = server.get("/demo")?["request"].take();
    let mut state = demo["state"].as_object().cloned().context("the demo has no state")?;
    let mut executed = 0;
    for chunk in 0..CHUNKS {
        let observation = json!({
            "images": demo["images"], "state": state, "instruction": "pick up the pear and put it on the plate",
            "seed": chunk,
        });
        let started = Instant::now();
        let reply = server.predict(&observation)?;
        let horizon = reply["action_horizon"].as_u64().context("the answer has no horizon")? as usize;
        let device_ms = reply["timing_ms"]["device"].as_f64().unwrap_or_default();
        let wall_ms = started.elapsed().as_secs_f64() * 1e3;
        println!("chunk {chunk}: {horizon} steps in {wall_ms:.1} ms, {device_ms:.1} on the device");
        for step in 0..EXECUTED_STEPS.min(horizon) {
            execute(&mut state, &reply["actions"], step)?;
            executed += 1;
        }
    }
    println!("executed {executed} steps; state {}", Value::Object(state));
    Ok(executed)
}

/// One control step: every joint to its target. A real robot waits here for its next cycle.
fn execute(state: &mut Map<String, Value>, actions: &Value, step: usize) -> Result<()> {
    for (key, steps) in actions.as_object().context("the answer has no actions")? {
        let target = steps.get(step).with_context(|| format!("no step {step} of {key}"))?;
        if let Some(joints) = state.get_mut(key) {
            *joints = json!([target]);
        }
    }
    Ok(())
}

struct Server {
    agent: ureq::Agent,
    url: String,
    authorization: String,
}

impl Server {
    fn new(url: &str) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_TIME))
            .build();
        let token = std::env::var("GR00T_API_TOKEN").unwrap_or_default();
        Self {
            agent: agent.into(),
            url: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {token}"),
        }
    }

    fn get(&self, path: &str) -> Result<Value> {
        let answer = self.agent.get(format!("{}{path}", self.url));
        let (status, body) = read(answer.header("authorization", &self.authorization).call()?)?;
        if status != 200 {
            bail!("GET {path}: {status} {body}");
        }
        Ok(body)
    }

    /// Asks again while the server is busy with others.
    fn predict(&self, observation: &Value) -> Result<Value> {
        for _ in 0..BUSY_TRIES {
            let request = self
                .agent
                .post(format!("{}/predict", self.url))
                .header("content-type", "application/json")
                .header("authorization", &self.authorization);
            match read(request.send(observation.to_string())?)? {
                (200, reply) => return Ok(reply),
                (429, _) => std::thread::sleep(BUSY_PAUSE),
                (status, body) => bail!("POST /predict: {status} {body}"),
            }
        }
        bail!("POST /predict: busy for {BUSY_TRIES} tries")
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Result<(u16, Value)> {
    let text = answer.body_mut().read_to_string()?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok((answer.status().as_u16(), body))
}
