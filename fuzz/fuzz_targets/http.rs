//! Bodies of `/predict` (first byte even) and `/act` (odd), through the whole server but the model, which answers
//! everything as it did the first request.
//! Whatever is sent gets a JSON answer that is no 5xx.
#![no_main]

use std::sync::{Arc, LazyLock, OnceLock};

use axum::body::Body;
use axum::http::Request;
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::{ModelConfig, ModelInputs};
use gr00t_model::tt_ops::Soft;
use gr00t_model::{ModelError, NormalizedActions, Policy, RunOptions};
use gr00t_serve::about::About;
use gr00t_serve::http::{App, HttpLimits};
use gr00t_serve::metrics::Metrics;
use gr00t_serve::service::{Engine, Limits, Model, Service};
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// The robot that is served.
const DATA_CONFIG: &str = "fourier_gr1_arms_only";

/// Answers everything with the actions of the first request.
#[derive(Debug)]
struct Once {
    model: Arc<dyn Model>,
    first: OnceLock<NormalizedActions>,
}

impl Model for Once {
    fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions, ModelError> {
        if let Some(actions) = self.first.get() {
            return Ok(actions.clone());
        }
        let actions = self.model.predict(inputs, options)?;
        Ok(self.first.get_or_init(|| actions).clone())
    }
}

static SERVER: LazyLock<(Runtime, App)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let app = runtime.block_on(async { server() });
    (runtime, app)
});

fn server() -> App {
    let spec = WeightsSpec::Synthetic { seed: 0 };
    let checkpoint =
        Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini())).expect("made-up weights");
    let data_config = DataConfig::builtin(DATA_CONFIG).expect("built in");
    let metadata = synthetic_metadata(&data_config).expect("of a data config that is built in");
    let policy = Policy::builder(&checkpoint, Soft::open().expect("a device"))
        .data_config(data_config.clone())
        .build()
        .expect("a policy");
    let engine = Engine::new(&policy, &policy, data_config, metadata)
        .with_model(|model| Arc::new(Once { model, first: OnceLock::new() }));
    let service = Service::new(Limits::default(), Arc::new(Metrics::new().expect("metrics")));
    service.install(engine);
    let app = App::new(service.clone(), None, HttpLimits::default());
    app.set_about(About::default());
    service.open();
    app
}

fuzz_target!(|bytes: &[u8]| {
    let Some((route, body)) = bytes.split_first() else { return };
    let route = if route % 2 == 0 { "/predict" } else { "/act" };
    let (runtime, app) = &*SERVER;
    let request = Request::post(route).body(Body::from(body.to_vec())).expect("a request");
    runtime.block_on(async {
        let response = app.router().oneshot(request).await.expect("infallible");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(!status.is_server_error(), "{status}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice::<serde_json::Value>(&body).expect("JSON");
    });
});
