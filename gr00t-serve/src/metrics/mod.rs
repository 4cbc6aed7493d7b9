//! Counters and latencies in Prometheus' text format.

use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

use crate::service::{Reply, ServiceError};

/// Upper bounds of the latency buckets in seconds: 0.25 ms to 30 s.
const SECONDS: [f64; 16] =
    [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// All metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    predictions: IntCounter,
    errors: IntCounterVec,
    queue_depth: IntGauge,
    stage_seconds: HistogramVec,
    request_seconds: Histogram,
    default_prompts: IntCounter,
    out_of_range: IntCounter,
    warnings: IntCounter,
}

/// Counts a request as waiting until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a IntGauge);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Metrics at zero.
    ///
    /// # Errors
    /// If a name is registered twice.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let name = |name: &str| format!("gr00t_{name}");
        let counter = |n: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            let counter = IntCounter::new(name(n), help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let counters = |n: &str, help: &str, label: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            let counters = IntCounterVec::new(Opts::new(name(n), help), label)?;
            registry.register(Box::new(counters.clone()))?;
            Ok(counters)
        };
        let times = |n: &str, help: &str| HistogramOpts::new(name(n), help).buckets(SECONDS.to_vec());
        let stage_seconds =
            HistogramVec::new(times("stage_seconds", "Wall time of each part of a prediction"), &["stage"])?;
        registry.register(Box::new(stage_seconds.clone()))?;
        let request_seconds =
            Histogram::with_opts(times("request_seconds", "From a request's arrival to its actions"))?;
        registry.register(Box::new(request_seconds.clone()))?;
        let queue_depth = IntGauge::new(name("queue_depth"), "Requests that wait for the device")?;
        registry.register(Box::new(queue_depth.clone()))?;
        Ok(Self {
            requests: counters("requests_total", "Requests by protocol and route", &["protocol", "route"])?,
            predictions: counter("predictions_total", "Predictions that gave actions")?,
            errors: counters("errors_total", "Predictions that gave none, by kind", &["kind"])?,
            default_prompts: counter(
                "default_prompts_total",
                "Predictions without an instruction of their own",
            )?,
            out_of_range: counter(
                "out_of_range_values_total",
                "Action values outside the range of the training data",
            )?,
            warnings: counter("warnings_total", "Warnings in answers")?,
            queue_depth,
            stage_seconds,
            request_seconds,
            registry,
        })
    }

    /// Counts a request of `protocol` (`http`, `zmq`, `websocket`) for `route`; both are names of ours, never a client's.
    pub fn request(&self, protocol: &'static str, route: &'static str) {
        self.requests.with_label_values(&[protocol, route]).inc();
    }

    /// Counts an error outside a prediction, such as a body that cannot be parsed.
    pub fn error(&self, kind: &'static str) {
        self.errors.with_label_values(&[kind]).inc();
    }

    /// Counts a prediction for which the robot gave no instruction.
    pub fn default_prompt(&self) {
        self.default_prompts.inc();
    }

    /// The text that Prometheus scrapes.
    ///
    /// # Errors
    /// What the encoder reports.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub(crate) fn waiting(&self) -> Waiting<'_> {
        self.queue_depth.inc();
        Waiting(&self.queue_depth)
    }

    pub(crate) fn finished(&self, result: &Result<Reply, ServiceError>) {
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => return self.error(error.kind()),
        };
        let timings = &reply.timings;
        let observe = |stage: &str, time: Duration| {
            self.stage_seconds.with_label_values(&[stage]).observe(time.as_secs_f64());
        };
        observe("encode", timings.encode);
        observe("queue", timings.queue);
        observe("device", timings.device);
        observe("decode", timings.decode);
        for stage in &timings.model.stages {
            observe(stage.stage.name(), stage.elapsed);
        }
        self.request_seconds.observe(timings.total.as_secs_f64());
        self.predictions.inc();
        self.out_of_range.inc_by(reply.chunk.out_of_range as u64);
        self.warnings.inc_by(reply.warnings.len() as u64);
    }
}
