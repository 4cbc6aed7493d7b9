//! Every built-in data config through every protocol: the same observation with the same seed gives the bytes of the Rust API.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use gr00t_host::ActionChunk;
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::encode::EncoderOptions;
use gr00t_host::image::{Frame, ResolutionPolicy};
use gr00t_host::observation::{Observation, Values};
use gr00t_host::prompt::Tokenizer;
use gr00t_host::state::UnknownKeys;
use gr00t_model::tt_ops::Soft;
use gr00t_model::{Policy, PredictOptions};
use gr00t_serve::codec::msgpack_numpy::{self, Dialect};
use gr00t_serve::codec::{Array, Elements, Limits as CodecLimits, Value, json_numpy};
use gr00t_serve::http::{App, HttpLimits, accept};
use gr00t_serve::metrics::Metrics;
use gr00t_serve::service::{Engine, Limits, Robot, Service};
use gr00t_serve::{websocket, zmq};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::{Message, client};

use crate::peer::{Peer, connect};
use crate::rig::{assert_same, policy};

const SIDE: usize = 256;
const SEED: u64 = 11;
const TASK: &str = "put the cup on the plate";

/// One robot behind all protocols.
struct All {
    robot: Arc<Robot>,
    policy: Policy<Soft>,
    http: SocketAddr,
    zmq: SocketAddr,
    websocket: SocketAddr,
    service: Service,
}

impl All {
    fn start(runtime: &Runtime, name: &str) -> Self {
        let data_config = DataConfig::builtin(name).unwrap();
        let metadata = synthetic_metadata(&data_config).unwrap();
        let of = |options: EncoderOptions| {
            Policy::on(Arc::clone(policy().model()))
                .data_config(data_config.clone())
                .metadata(metadata.clone())
                .tokenizer(Arc::new(Tokenizer::qwen2()))
                .encoder_options(options)
                .build()
                .unwrap()
        };
        let predict =
            of(EncoderOptions { resolution: ResolutionPolicy::Resize, ..EncoderOptions::default() });
        let upstream = of(EncoderOptions { unknown_keys: UnknownKeys::Warn, ..EncoderOptions::default() });
        let engine = Engine::new(&predict, &upstream, data_config, metadata);
        let robot = Arc::clone(engine.robot());
        let service = Service::new(Limits::default(), Arc::new(Metrics::new().unwrap()));
        service.install(engine);
        service.open();
        let listen = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let sockets = [listen(), listen(), listen()];
        let [http, zmq_at, websocket_at] = [0, 1, 2].map(|i: usize| sockets[i].local_addr().unwrap());
        let [http_socket, zmq_socket, websocket_socket] = sockets;
        let app = App::new(service.clone(), None, HttpLimits::default());
        runtime.spawn(accept(app, http_socket));
        runtime.spawn(zmq::serve(zmq_socket, service.clone(), zmq::Options::default()));
        runtime.spawn(websocket::serve(websocket_socket, service.clone(), websocket::Options::default()));
        Self { robot, policy: predict, http, zmq: zmq_at, websocket: websocket_at, service }
    }

    /// Another picture for each camera, another value for each joint.
    fn observation(&self) -> Observation {
        let pixels = |camera: usize| (0..SIDE * SIDE * 3).map(|i| ((i * (camera + 3)) % 253) as u8).collect();
        let frame = |camera| Frame::new(SIDE, SIDE, pixels(camera)).unwrap();
        let joints = |key: usize, dim: usize| (0..dim).map(|i| 0.1 * (i + key) as f64 - 0.3).collect();
        Observation {
            images: self.robot.cameras.iter().enumerate().map(|(i, c)| (c.key.clone(), frame(i))).collect(),
            state: self
                .robot
                .state
                .iter()
                .enumerate()
                .map(|(i, key)| (key.key.clone(), Values::F64(joints(i, key.dim))))
                .collect(),
            instruction: Some(TASK.to_owned()),
        }
    }

    /// Arrays of the observation by modality and name, with `lead` in front of their shapes.
    fn arrays(&self, lead: &[usize]) -> Vec<(&'static str, String, Value)> {
        let observation = self.observation();
        let shape = |own: &[usize]| [lead, own].concat();
        let frames = observation.images.iter().map(|(key, frame)| {
            let pixels = Elements::U8(frame.rgb().to_vec());
            ("video", key.clone(), Array::new(shape(&[SIDE, SIDE, 3]), pixels).unwrap())
        });
        let rows = observation.state.iter().map(|(key, values)| {
            let Values::F64(values) = values else { panic!("{key}") };
            ("state", key.clone(), Array::new(shape(&[values.len()]), Elements::F64(values.clone())).unwrap())
        });
        frames.chain(rows).map(|(modality, key, array)| (modality, key, Value::Array(array))).collect()
    }

    /// N1.5's flat keys.
    fn flat(&self) -> Vec<(String, Value)> {
        let arrays = self.arrays(&[1]).into_iter();
        let mut pairs: Vec<_> =
            arrays.map(|(modality, key, value)| (format!("{modality}.{key}"), value)).collect();
        pairs.push((self.robot.data_config.language_key.clone(), Value::List(vec![Value::text(TASK)])));
        pairs.push(("gr00t_tt.seed".into(), Value::Int(SEED.into())));
        pairs
    }

    /// N1.6's nested maps.
    fn nested(&self) -> Value {
        let of = |wanted: &str| {
            let arrays = self.arrays(&[1, 1]).into_iter().filter(|(modality, ..)| *modality == wanted);
            Value::Map(arrays.map(|(_, key, value)| (key, value)).collect())
        };
        let text = Value::List(vec![Value::List(vec![Value::text(TASK)])]);
        let language = Value::map([(self.robot.data_config.language_key.clone(), text)]);
        let observation =
            Value::map([("video", of("video")), ("state", of("state")), ("language", language)]);
        let options = Value::map([("gr00t_tt.seed", Value::Int(SEED.into()))]);
        Value::map([("observation", observation), ("options", options)])
    }

    fn post(&self, path: &str, body: &str) -> String {
        let mut stream = connect(self.http);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}: {body}");
        body.to_owned()
    }

    /// `/predict`'s actions.
    fn predict(&self) -> serde_json::Value {
        let observation = self.observation();
        let images: serde_json::Map<_, _> =
            observation.images.iter().map(|(key, frame)| (key.clone(), bmp(frame).into())).collect();
        let state: serde_json::Map<_, _> = observation
            .state
            .iter()
            .map(|(key, values)| {
                let Values::F64(values) = values else { panic!("{key}") };
                (key.clone(), serde_json::json!([values]))
            })
            .collect();
        let body = serde_json::json!({ "images": images, "state": state, "instruction": TASK, "seed": SEED });
        serde_json::from_str(&self.post("/predict", &body.to_string())).unwrap()
    }
}

/// A picture file without loss, in base64.
fn bmp(frame: &Frame) -> String {
    use base64::Engine as _;
    const HEAD: u32 = 54;
    let bytes = u32::try_from(SIDE * SIDE * 3).unwrap();
    let mut file = b"BM".to_vec();
    for word in [HEAD + bytes, 0, HEAD, 40, SIDE as u32, SIDE as u32, 1 | 24 << 16, 0, bytes, 0, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    // from the last row to the first, blue first
    for row in frame.rgb().chunks(SIDE * 3).rev() {
        file.extend(row.chunks(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
    }
    base64::engine::general_purpose::STANDARD.encode(file)
}

fn assert_json_is(actions: &serde_json::Value, wanted: &ActionChunk) {
    for group in &wanted.groups {
        let rows = actions[&group.key].as_array().unwrap_or_else(|| panic!("{} is missing", group.key));
        let got: Vec<u32> = rows
            .iter()
            .flat_map(|row| row.as_array().unwrap())
            .map(|x| (x.as_f64().unwrap() as f32).to_bits())
            .collect();
        let bits: Vec<u32> = group.values.iter().map(|x| x.to_bits()).collect();
        assert_eq!(got, bits, "{}", group.key);
    }
}

fn check_modality_config(all: &All) {
    let ask = |peer: &mut Peer| peer.ask_bytes(b"\x81\xa8endpoint\xb3get_modality_config");
    let (video, state, action): (Vec<&str>, Vec<&str>, Vec<&str>) = (
        all.robot.data_config.video_keys.iter().map(String::as_str).collect(),
        all.robot.data_config.state_keys.iter().map(|k| k.key.as_str()).collect(),
        all.robot.data_config.action_keys.iter().map(|k| k.key.as_str()).collect(),
    );
    let language = vec![all.robot.data_config.language_key.as_str()];
    let modalities =
        [("video", video, 1), ("state", state, 1), ("action", action, 16), ("language", language, 1)];
    let mut peer = Peer::new(all.zmq);
    let n15 = ask(&mut peer);
    assert_eq!(peer.ask(vec![("endpoint", Value::text("reset"))]), Value::Map(vec![]));
    let n16 = ask(&mut peer);
    for (modality, keys, steps) in modalities {
        let text = n15.get(modality).unwrap().get("as_json").unwrap().as_text().unwrap();
        let prefix = if modality == "language" { String::new() } else { format!("{modality}.") };
        let prefixed: Vec<String> = keys.iter().map(|key| format!("{prefix}{key}")).collect();
        let wanted =
            serde_json::json!({ "delta_indices": (0..steps).collect::<Vec<_>>(), "modality_keys": prefixed });
        assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), wanted);
        let map = n16.get(modality).unwrap().get("as_json").unwrap();
        assert_eq!(
            map.get("modality_keys").unwrap(),
            &Value::List(keys.into_iter().map(Value::text).collect())
        );
        let Some(Value::List(indices)) = map.get("delta_indices") else { panic!("{map:?}") };
        assert_eq!(indices.len(), steps);
    }
}

#[test]
fn every_data_config_gives_the_same_bytes_through_every_protocol() {
    let runtime = Runtime::new().unwrap();
    let names: Vec<&str> = DataConfig::builtin_names().collect();
    assert!(names.len() >= 12);
    for name in names {
        let all = All::start(&runtime, name);
        let wanted =
            all.policy.predict_with(&all.observation(), &PredictOptions::new().seed(SEED)).unwrap().chunk;

        let answer = all.predict();
        assert_json_is(&answer["actions"], &wanted);
        assert_eq!(answer["images"].as_object().unwrap().len(), all.robot.cameras.len(), "{name}");

        let request = Value::map([("observation", Value::Map(all.flat()))]);
        let acted = all.post("/act", &json_numpy::encode(&request));
        assert_same(
            &json_numpy::decode(acted.as_bytes(), CodecLimits::default()).unwrap(),
            "action.",
            &wanted,
            None,
        );

        let mut peer = Peer::new(all.zmq);
        assert_same(&peer.act(all.flat()), "action.", &wanted, None);
        let reply = peer.ask(vec![("endpoint", Value::text("get_action")), ("data", all.nested())]);
        let Value::List(reply) = reply else { panic!("{name}: {reply:?}") };
        assert_same(&reply[0], "", &wanted, Some(1));
        check_modality_config(&all);

        let (mut socket, _) = client::client("ws://127.0.0.1/", connect(all.websocket)).unwrap();
        socket.read().unwrap();
        socket
            .send(Message::Binary(msgpack_numpy::encode(&Value::Map(all.flat()), Dialect::default()).into()))
            .unwrap();
        let Message::Binary(reply) = socket.read().unwrap() else { panic!("{name}: no actions") };
        let reply = msgpack_numpy::decode(&reply, CodecLimits::default()).unwrap().0;
        assert_same(&reply, "action.", &wanted, None);
        all.service.stop();
    }
}
