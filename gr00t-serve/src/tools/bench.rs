//! `gr00t-serve bench`: throughput, and median, p90 and p99 of each part of a request.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::client::Client;

const ANSWER_TIME: Duration = Duration::from_mins(5);

/// Options of `bench`.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub url: String,
    /// Seconds to wait for it to become ready
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
    /// Requests that are measured
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub reps: u32,
    /// Requests before them
    #[arg(long, default_value_t = 10)]
    pub warmup: u32,
    /// Requests at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,
    /// Where the report goes too
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Samples {
    /// Part → milliseconds of each request.
    parts: BTreeMap<String, Vec<f64>>,
    /// Status → count.
    statuses: BTreeMap<u16, usize>,
    broken: usize,
}

/// The report. Requests that the server's bound refuses (429) are counted apart from failures.
///
/// # Errors
/// If the server cannot be reached or has no demo.
pub fn bench(options: &BenchOptions) -> Result<Value> {
    let client = Client::new(&options.url, ANSWER_TIME);
    client.wait(Duration::from_secs(options.wait))?;
    let info = client.get_ok("/info")?;
    let demo = client.get_ok("/demo")?;
    let body = serde_json::to_vec(demo.get("request").context("/demo has no request")?)?;
    for _ in 0..options.warmup {
        client.post("/predict", &body)?;
    }
    let samples = Mutex::new(Samples::default());
    let (next, reps) = (AtomicUsize::new(0), options.reps as usize);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.concurrency {
            // a connection of its own each
            let client = Client::new(&options.url, ANSWER_TIME);
            let (samples, next, body) = (&samples, &next, &body);
            scope.spawn(move || {
                while next.fetch_add(1, Ordering::Relaxed) < reps {
                    let sent = Instant::now();
                    let answer = client.post("/predict", body);
                    let wall_ms = sent.elapsed().as_secs_f64() * 1e3;
                    samples.lock().unwrap_or_else(PoisonError::into_inner).add(answer, wall_ms);
                }
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let samples = samples.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ok = samples.statuses.get(&200).copied().unwrap_or_default();
    let overloaded = samples.statuses.get(&429).copied().unwrap_or_default();
    let report = json!({
        "url": options.url, "model": info["model"], "device": info["hardware"], "policy": info["policy"],
        "requests": reps, "concurrency": options.concurrency, "warmup": options.warmup, "seconds": seconds,
        "ok": ok, "overloaded": overloaded, "failed": reps - ok - overloaded, "statuses": samples.statuses,
        "throughput_per_s": ok as f64 / seconds, "parts_ms": samples.figures(),
    });
    if let Some(file) = &options.out {
        std::fs::write(file, format!("{report:#}\n")).with_context(|| file.display().to_string())?;
    }
    Ok(report)
}

impl Samples {
    fn add(&mut self, answer: Result<(u16, Value)>, wall_ms: f64) {
        let Ok((status, body)) = answer else {
            self.broken += 1;
            return;
        };
        // of something that is no server of ours
        if status == 200 && !body["actions"].is_object() {
            self.broken += 1;
            return;
        }
        *self.statuses.entry(status).or_default() += 1;
        if status != 200 {
            return;
        }
        let mut part = |name: &str, ms: f64| self.parts.entry(name.to_owned()).or_default().push(ms);
        part("wall", wall_ms);
        let mut inside = 0.0;
        for (name, ms) in body["timing_ms"].as_object().into_iter().flatten() {
            if let Some(ms) = ms.as_f64() {
                part(name, ms);
                inside += if ["encode", "device", "decode_actions", "queue"].contains(&name.as_str()) {
                    ms
                } else {
                    0.0
                };
            }
        }
        // sockets, JSON, base64, image file, and the ways between threads
        part("overhead", wall_ms - inside);
    }

    fn figures(&self) -> Map<String, Value> {
        let figures = |samples: &Vec<f64>| {
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let rank = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len());
                sorted.get(rank - 1).map(|ms| (ms * 1e3).round() / 1e3)
            };
            json!({ "min": at(0.0), "median": at(0.5), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99), "max": at(1.0) })
        };
        self.parts.iter().map(|(name, samples)| (name.clone(), figures(samples))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_actions_is_none() {
        let mut samples = Samples::default();
        for (status, body) in
            [(200, json!({})), (200, json!("hi")), (429, json!({})), (200, json!({ "actions": {} }))]
        {
            samples.add(Ok((status, body)), 1.0);
        }
        assert_eq!(
            (samples.broken, samples.statuses.into_iter().collect::<Vec<_>>()),
            (2, vec![(200, 1), (429, 1)])
        );
        assert_eq!(samples.parts["wall"].len(), 1);
    }
}
