//! A server on the mini model, in the test's own process; the weights are loaded once.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use axum::body::Body;
use axum::http::Request;
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::encode::EncoderOptions;
use gr00t_host::image::ResolutionPolicy;
use gr00t_host::prompt::Tokenizer;
use gr00t_host::state::UnknownKeys;
use gr00t_host::{ModelConfig, ModelInputs};
use gr00t_model::tt_ops::Soft;
use gr00t_model::{ModelError, NormalizedActions, Policy, RunOptions};
use gr00t_serve::about::About;
use gr00t_serve::auth::Token;
use gr00t_serve::demo;
use gr00t_serve::http::{App, HttpLimits};
use gr00t_serve::metrics::Metrics;
use gr00t_serve::service::{Engine, Limits, Model, Service};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const DATA_CONFIG: &str = "fourier_gr1_arms_only";

/// The demo's body with `field` set, or without it where `value` is null.
pub(crate) fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().unwrap();
    if value.is_null() {
        fields.remove(field);
    } else {
        fields.insert(field.into(), value);
    }
    body
}

fn policies() -> &'static (Policy<Soft>, Policy<Soft>) {
    static POLICIES: OnceLock<(Policy<Soft>, Policy<Soft>)> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let spec = WeightsSpec::Synthetic { seed: 0 };
        let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini())).unwrap();
        let data_config = DataConfig::builtin(DATA_CONFIG).unwrap();
        let resize = EncoderOptions { resolution: ResolutionPolicy::Resize, ..EncoderOptions::default() };
        let warn = EncoderOptions { unknown_keys: UnknownKeys::Warn, ..EncoderOptions::default() };
        let policy = Policy::builder(&checkpoint, Soft::open().unwrap())
            .data_config(data_config.clone())
            .encoder_options(resize)
            .build()
            .unwrap();
        let upstream = Policy::on(Arc::clone(policy.model()))
            .metadata(synthetic_metadata(&data_config).unwrap())
            .tokenizer(Arc::new(Tokenizer::qwen2()))
            .data_config(data_config)
            .encoder_options(warn)
            .build()
            .unwrap();
        (policy, upstream)
    })
}

/// An engine on the shared model.
pub(crate) fn engine() -> Engine {
    let data_config = DataConfig::builtin(DATA_CONFIG).unwrap();
    let metadata = synthetic_metadata(&data_config).unwrap();
    let (policy, upstream) = policies();
    Engine::new(policy, upstream, data_config, metadata)
}

/// A model that can be held up and made to fail, and that counts.
#[derive(Debug)]
pub(crate) struct Held {
    inner: OnceLock<Arc<dyn Model>>,
    closed: Mutex<bool>,
    changed: Condvar,
    pub(crate) entered: AtomicUsize,
    pub(crate) failures: AtomicUsize,
}

impl Held {
    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.changed.notify_all();
    }
}

impl Model for Held {
    fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions, ModelError> {
        self.entered.fetch_add(1, Ordering::SeqCst);
        drop(self.changed.wait_while(self.closed.lock().unwrap(), |closed| *closed).unwrap());
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
            return Err(ModelError::NotFinite { count: 1, elements: 512 });
        }
        self.inner.get().unwrap().predict(inputs, options)
    }
}

/// A server, ready.
pub(crate) struct Rig {
    pub(crate) app: App,
    pub(crate) service: Service,
    pub(crate) model: Arc<Held>,
    /// The demo's body.
    pub(crate) body: Value,
}

/// What an answer was.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), HttpLimits::default(), None)
    }

    pub(crate) fn with(limits: Limits, http: HttpLimits, token: Option<&str>) -> Self {
        let rig = Self::starting(limits, http, token);
        rig.app.set_about(About { model: "mini".into(), model_id: "synthetic".into(), ..About::default() });
        rig.service.open();
        rig
    }

    /// A server that is not warm.
    pub(crate) fn starting(limits: Limits, http: HttpLimits, token: Option<&str>) -> Self {
        let service = Service::new(limits, Arc::new(Metrics::new().unwrap()));
        let model = Arc::new(Held {
            inner: OnceLock::new(),
            closed: Mutex::new(false),
            changed: Condvar::new(),
            entered: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
        });
        let held = Arc::clone(&model);
        let engine = engine().with_model(move |inner| {
            held.inner.set(inner).unwrap();
            held
        });
        let (_, body) = demo::observation(engine.robot()).unwrap();
        service.install(engine);
        let token = token.map(|token| Token::new(token).unwrap());
        Self { app: App::new(service.clone(), token, http), service, model, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(Request::post(path).body(body.into()).unwrap()).await
    }

    pub(crate) async fn predict(&self, body: &Value) -> Answer {
        self.post("/predict", body.to_string()).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.app.router().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status, headers, text, json }
    }

    /// Waits until the device was asked `count` times.
    pub(crate) async fn entered(&self, count: usize) {
        while self.model.entered.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }
}
