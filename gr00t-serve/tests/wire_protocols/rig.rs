//! A service on the mini model with synthetic weights, and the three servers on loopback.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::image::Frame;
use gr00t_host::observation::{Observation, Values};
use gr00t_host::{ActionChunk, ModelInputs};
use gr00t_model::tt_ops::Soft;
use gr00t_model::{ModelError, NormalizedActions, Policy, PredictOptions, RunOptions};
use gr00t_serve::codec::{Array, Elements, Value};
use gr00t_serve::http::{App, HttpLimits, accept};
use gr00t_serve::metrics::Metrics;
use gr00t_serve::service::{Engine, Limits, Model, Service};
use gr00t_serve::{websocket, zmq};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub(crate) const INSTRUCTION: &str = "pick the pear, don't drop it";
const SIDE: usize = 256;
const JOINTS: [(&str, usize); 4] = [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6)];

/// The model behind a door that a test may keep shut.
#[derive(Debug)]
pub(crate) struct Gate {
    model: Arc<dyn Model>,
    shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn shut(&self) {
        *self.shut.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.shut.lock().unwrap() = false;
        self.opened.notify_all();
    }
}

#[derive(Debug)]
struct Gated(Arc<Gate>);

impl Model for Gated {
    fn predict(&self, inputs: &ModelInputs, options: &RunOptions) -> Result<NormalizedActions, ModelError> {
        drop(self.0.opened.wait_while(self.0.shut.lock().unwrap(), |shut| *shut).unwrap());
        self.0.model.predict(inputs, options)
    }
}

pub(crate) fn data_config() -> DataConfig {
    DataConfig::builtin("fourier_gr1_arms_only").unwrap()
}

/// Loaded once for all tests.
pub(crate) fn policy() -> &'static Policy<Soft> {
    static POLICY: OnceLock<Policy<Soft>> = OnceLock::new();
    POLICY.get_or_init(|| {
        let spec = WeightsSpec::Synthetic { seed: 3 };
        let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini())).unwrap();
        Policy::builder(&checkpoint, Soft::open().unwrap()).data_config(data_config()).build().unwrap()
    })
}

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) service: Service,
    pub(crate) gate: Arc<Gate>,
    pub(crate) zmq: SocketAddr,
    pub(crate) websocket: SocketAddr,
    pub(crate) http: SocketAddr,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(zmq::Options::default(), websocket::Options::default())
    }

    pub(crate) fn with(zmq_options: zmq::Options, websocket_options: websocket::Options) -> Self {
        let runtime = Runtime::new().unwrap();
        let service = Service::new(Limits::default(), Arc::new(Metrics::new().unwrap()));
        let metadata = synthetic_metadata(&data_config()).unwrap();
        let mut gate = None;
        let engine = Engine::new(policy(), policy(), data_config(), metadata).with_model(|model| {
            let door = Arc::new(Gate { model, shut: Mutex::new(false), opened: Condvar::new() });
            gate = Some(Arc::clone(&door));
            Arc::new(Gated(door))
        });
        service.install(engine);
        service.open();
        let listen = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (zmq_socket, websocket_socket, http_socket) = (listen(), listen(), listen());
        let http = http_socket.local_addr().unwrap();
        runtime.spawn(accept(App::new(service.clone(), None, HttpLimits::default()), http_socket));
        let addresses = (zmq_socket.local_addr().unwrap(), websocket_socket.local_addr().unwrap());
        runtime.spawn(zmq::serve(zmq_socket, service.clone(), zmq_options));
        runtime.spawn(websocket::serve(websocket_socket, service.clone(), websocket_options));
        Self { runtime, service, gate: gate.unwrap(), zmq: addresses.0, websocket: addresses.1, http }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.gate.open();
    }
}

fn pixels() -> Vec<u8> {
    (0..SIDE * SIDE * 3).map(|i| (i % 251) as u8).collect()
}

fn joints(dim: usize) -> Vec<f64> {
    (0..dim).map(|i| 0.125 * i as f64 - 0.25).collect()
}

/// The observation of all tests; `wire_clients.py` makes the same.
pub(crate) fn observation() -> Observation {
    Observation {
        images: [("ego_view".to_owned(), Frame::new(SIDE, SIDE, pixels()).unwrap())].into(),
        state: JOINTS.map(|(key, dim)| (key.to_owned(), Values::F64(joints(dim)))).into(),
        instruction: Some(INSTRUCTION.to_owned()),
    }
}

/// The same as a message, `batch` of it if there is one.
pub(crate) fn message(batch: Option<usize>) -> Vec<(String, Value)> {
    let array = |shape: &[usize], elements| Value::Array(Array::new(shape.to_vec(), elements).unwrap());
    let lead: Vec<usize> = batch.into_iter().chain([1]).collect();
    let shape = |own: &[usize]| [&lead[..], own].concat();
    let times = batch.unwrap_or(1);
    let mut pairs: Vec<(String, Value)> = JOINTS
        .iter()
        .map(|&(key, dim)| {
            (format!("state.{key}"), array(&shape(&[dim]), Elements::F64(joints(dim).repeat(times))))
        })
        .collect();
    pairs.push((
        "video.ego_view".into(),
        array(&shape(&[SIDE, SIDE, 3]), Elements::U8(pixels().repeat(times))),
    ));
    let texts = vec![Value::text(INSTRUCTION); times];
    pairs.push(("annotation.human.action.task_description".into(), Value::List(texts)));
    pairs
}

pub(crate) fn seeded(mut pairs: Vec<(String, Value)>, seed: u64) -> Vec<(String, Value)> {
    pairs.push(("gr00t_tt.seed".into(), Value::Int(seed.into())));
    pairs
}

/// What the Rust API answers.
pub(crate) fn expected(seed: u64) -> ActionChunk {
    policy().predict_with(&observation(), &PredictOptions::new().seed(seed)).unwrap().chunk
}

/// Asserts that `actions` holds the same bytes as `chunk`, `batch` times if there is one.
pub(crate) fn assert_same(actions: &Value, prefix: &str, chunk: &ActionChunk, batch: Option<usize>) {
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for group in &chunk.groups {
        let Some(Value::Array(array)) = actions.get(&format!("{prefix}{}", group.key)) else {
            panic!("{} is missing in {:?}", group.key, actions.kind());
        };
        let shape: Vec<usize> = batch.into_iter().chain([chunk.horizon, group.dim]).collect();
        assert_eq!(array.shape(), shape, "{}", group.key);
        let Elements::F32(values) = array.elements() else { panic!("{:?}", array.dtype()) };
        assert_eq!(bits(values), bits(&group.values.repeat(batch.unwrap_or(1))), "{}", group.key);
    }
}
