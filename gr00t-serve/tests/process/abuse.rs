//! What strangers do to open ports. Afterwards the next good request succeeds and the memory is back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gr00t_serve::codec::{Array, Elements, Value, json_numpy, msg_serializer, msgpack_numpy};
use msgpack_numpy::Dialect;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::peer::{HANDSHAKE, PATIENCE, Peer, connect, error, greeting};
use crate::server::{MINI, PROGRAM, READY, Server, command};

/// How long random bytes are sent; a minute is a good length by hand.
const SECONDS_VARIABLE: &str = "ABUSE_SECONDS";
const DEFAULT_SECONDS: u64 = 2;
/// Most memory that a server may keep beyond what it had before it was abused.
const KEPT_KIB: u64 = 64 << 10;
const CONNECTIONS: usize = 24;
const JOINTS: [(&str, usize); 4] = [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6)];

/// Its name, and what it does.
type Attack<'a> = (&'a str, &'a dyn Fn(&Target));

/// A server with all its ports.
struct Target {
    server: Server,
    http: SocketAddr,
    zmq: SocketAddr,
    websocket: SocketAddr,
    token: Option<&'static str>,
}

impl Target {
    fn start(token: Option<&'static str>) -> Self {
        let limit = CONNECTIONS.to_string();
        let flags = ["--port", "0", "--zmq-port", "0", "--websocket-port", "0", "--warmup-runs", "1"];
        let mut run = command(PROGRAM);
        run.args(MINI).args(flags).args(["--max-connections", &limit]);
        run.envs(token.map(|token| ("GR00T_API_TOKEN", token)));
        let mut server = Server::of(run);
        let [http, zmq, websocket] = ["HTTP", "ZeroMQ", "WebSocket"].map(|protocol| server.address(protocol));
        server.until(READY);
        // nobody reads the log any more, and it must not fill its pipe
        server.drain();
        Self { server, http, zmq, websocket, token }
    }

    fn ports(&self) -> [SocketAddr; 3] {
        [self.http, self.zmq, self.websocket]
    }

    fn post(&self, path: &str, body: &[u8], token: Option<&str>) -> u16 {
        let mut stream = connect(self.http);
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\n{token}connection: close\r\ncontent-length: {length}\r\n\r\n"
        )
        .unwrap();
        // an early refusal may close the connection in the middle of the body
        let _ = stream.write_all(body);
        status(stream)
    }

    fn websocket(&self, token: Option<&str>) -> Option<WebSocket<TcpStream>> {
        let mut request = "ws://127.0.0.1/".into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        client::client(request, connect(self.websocket)).ok().map(|(socket, _)| socket)
    }

    fn zmq(&self, observation: Vec<(String, Value)>, token: Option<&str>) -> Value {
        let mut request = vec![("endpoint", Value::text("get_action")), ("data", Value::Map(observation))];
        request.extend(token.map(|token| ("api_token", Value::text(token))));
        Peer::new(self.zmq).ask(request)
    }

    /// A good request through every protocol.
    fn is_well(&self) {
        let act = json_numpy::encode(&Value::map([("observation", Value::Map(observation()))]));
        assert_eq!(self.post("/act", act.as_bytes(), self.token), 200);
        let reply = self.zmq(observation(), self.token);
        assert!(reply.get("action.left_arm").is_some(), "{reply:?}");
        let mut socket = self.websocket(self.token).unwrap();
        assert!(matches!(socket.read().unwrap(), Message::Binary(_)));
        let message = msgpack_numpy::encode(&Value::Map(observation()), Dialect::default());
        socket.send(Message::Binary(message.into())).unwrap();
        assert!(matches!(socket.read().unwrap(), Message::Binary(_)));
    }

    fn resident_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn status(mut stream: TcpStream) -> u16 {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn array(shape: &[usize], elements: Elements) -> Value {
    Value::Array(Array::new(shape.to_vec(), elements).unwrap())
}

pub(crate) fn observation() -> Vec<(String, Value)> {
    let pixels = Elements::U8(vec![90; 256 * 256 * 3]);
    let mut pairs = vec![("video.ego_view".to_owned(), array(&[1, 256, 256, 3], pixels))];
    for (key, dim) in JOINTS {
        pairs.push((format!("state.{key}"), array(&[1, dim], Elements::F64(vec![0.1; dim]))));
    }
    pairs.push(("annotation.human.action.task_description".into(), Value::List(vec![Value::text("wave")])));
    pairs
}

/// The observation with another value at `key`.
fn with(key: &str, value: Value) -> Vec<(String, Value)> {
    let mut pairs = observation();
    pairs.retain(|(name, _)| name != key);
    pairs.push((key.to_owned(), value));
    pairs
}

/// xorshift: the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let count = self.next() % most;
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The start of each protocol, up to where a stranger's bytes matter.
fn openings(target: &Target) -> [(SocketAddr, Vec<u8>); 5] {
    let zmq = [&greeting()[..], HANDSHAKE].concat();
    let upgrade = b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    [
        (target.http, b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n".to_vec()),
        (target.http, Vec::new()),
        (target.zmq, zmq),
        (target.zmq, Vec::new()),
        (target.websocket, upgrade.to_vec()),
    ]
}

fn halves(target: &Target) {
    for (address, opening) in openings(target) {
        for cut in [1, opening.len() / 2, opening.len()] {
            let mut stream = connect(address);
            let _ = stream.write_all(&opening[..cut.min(opening.len())]);
        }
    }
}

/// Clients that send a byte now and then, while others are served.
fn slow_bytes(target: &Target) {
    let mut slow: Vec<(TcpStream, Vec<u8>)> = (0..CONNECTIONS / 4)
        .flat_map(|_| openings(target))
        .filter(|(_, opening)| !opening.is_empty())
        .map(|(address, opening)| (connect(address), opening))
        .collect();
    for at in 0..12 {
        for (stream, opening) in &mut slow {
            let _ = stream.write_all(&opening[at..=at]);
        }
        if at % 6 == 0 {
            target.is_well();
        }
    }
}

fn declared_lengths(target: &Target) {
    let mut http = connect(target.http);
    http.write_all(b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 1073741824\r\n\r\n{").unwrap();
    assert_eq!(status(http), 413, "refused before it is sent");
    for length in [1_u64 << 30, u64::MAX] {
        let mut peer = Peer::new(target.zmq);
        peer.write(&[&[1, 0, 2][..], &length.to_be_bytes(), b"abc"].concat());
        let mut socket = target.websocket(None).unwrap();
        socket.read().unwrap();
        socket.get_mut().write_all(&[&[0x82, 0xff][..], &length.to_be_bytes(), b"maskabc"].concat()).unwrap();
    }
    for body in [&b"\xc6\x40\0\0\0"[..], b"\xdd\x40\0\0\0", b"\xdf\x40\0\0\0", b"\x81\xa4data\xc6\x40\0\0\0"]
    {
        error(&Peer::new(target.zmq).ask_bytes(body));
    }
}

fn wrong_observations(target: &Target) {
    let nan = array(&[1, 7], Elements::F64(vec![f64::NAN; 7]));
    let infinite = array(&[1, 7], Elements::F32(vec![f32::INFINITY; 7]));
    let cases = [
        ("state.left_arm", nan),
        ("state.left_arm", infinite),
        ("state.left_arm", array(&[1, 3], Elements::F64(vec![0.0; 3]))),
        ("state.left_arm", array(&[1, 0], Elements::F64(vec![]))),
        ("state.left_arm", array(&[7], Elements::Text(vec!["x".into(); 7]))),
        ("state.left_arm", Value::List(vec![Value::text("0.1"); 7])),
        ("video.ego_view", array(&[1, 256, 256, 3], Elements::F32(vec![0.5; 256 * 256 * 3]))),
        ("video.ego_view", array(&[3, 256, 256], Elements::U8(vec![0; 256 * 256 * 3]))),
        ("video.ego_view", array(&[1, 0, 0, 3], Elements::U8(vec![]))),
        ("video.ego_view", Value::Null),
        ("annotation.human.action.task_description", Value::Int(3)),
        ("annotation.human.action.task_description", Value::text("a".repeat(10_000))),
        ("gr00t_tt.seed", Value::text("seven")),
    ];
    for (key, value) in cases {
        let observation = with(key, value);
        let said = error(&target.zmq(observation.clone(), None));
        assert!(!said.contains('\n'), "{said}");
        let body = json_numpy::encode(&Value::map([("observation", Value::Map(observation))]));
        let status = target.post("/act", body.as_bytes(), None);
        assert!((400..500).contains(&status), "{key}: {status}");
    }
}

fn deep_nesting(target: &Target) {
    let json = format!("{{\"images\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(target.post("/predict", json.as_bytes(), None), 422);
    let json = format!("{{\"observation\":{}{}}}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    assert_eq!(target.post("/act", json.as_bytes(), None), 422);
    error(&Peer::new(target.zmq).ask_bytes(&vec![0x91; 100_000]));
}

/// Clients that leave when their request is on its way.
fn vanishing(target: &Target) {
    let request = Value::map([("endpoint", Value::text("get_action")), ("data", Value::Map(observation()))]);
    let body = json_numpy::encode(&Value::map([("observation", Value::Map(observation()))]));
    for _ in 0..5 {
        let mut http = connect(target.http);
        write!(http, "POST /act HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        Peer::new(target.zmq).send(&msg_serializer::encode(&request));
        let mut socket = target.websocket(None).unwrap();
        let message = msgpack_numpy::encode(&Value::Map(observation()), Dialect::default());
        socket.send(Message::Binary(message.into())).unwrap();
    }
}

/// As many connections as are let in, and more; all idle.
fn floods(target: &Target) {
    for address in target.ports() {
        let idle: Vec<TcpStream> =
            (0..2 * CONNECTIONS).filter_map(|_| TcpStream::connect(address).ok()).collect();
        assert!(idle.len() >= CONNECTIONS);
        drop(idle);
        wait_for_places(target, address);
        target.is_well();
    }
}

/// Waits until the server has noticed that a flood is over.
fn wait_for_places(target: &Target, address: SocketAddr) {
    if address == target.http {
        // waits for a place by itself
        return;
    }
    let until = Instant::now() + PATIENCE;
    let greeted = || {
        let mut stream = connect(address);
        let probe =
            if address == target.zmq { &b""[..] } else { b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" };
        let _ = stream.write_all(probe);
        let greeted = stream.read(&mut [0; 1]).is_ok_and(|count| count == 1);
        greeted.then_some(stream)
    };
    while (0..CONNECTIONS / 2).map(|_| greeted()).collect::<Option<Vec<_>>>().is_none() {
        assert!(Instant::now() < until, "no places after a flood");
        std::thread::yield_now();
    }
}

fn random_bytes(target: &Target, time: Duration) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let started = Instant::now();
    let mut rounds = 0;
    while started.elapsed() < time || rounds < 20 {
        for (address, opening) in openings(target) {
            let mut stream = connect(address);
            let _ = stream.write_all(&[opening, random.bytes(2000)].concat());
        }
        let body = random.bytes(3000);
        Peer::new(target.zmq).send(&body);
        assert!((400..500).contains(&target.post("/act", &body, None)));
        // good bytes with one of them changed
        let mut body = msg_serializer::encode(&Value::map([("data", Value::Map(observation()))]));
        let at = (random.next() % body.len() as u64) as usize;
        body[at] = random.next() as u8;
        let mut peer = Peer::new(target.zmq);
        peer.send(&body);
        assert!(!peer.reply().is_empty());
        rounds += 1;
    }
}

#[test]
fn after_abuse_the_next_good_request_succeeds_and_memory_is_back() {
    let seconds = std::env::var(SECONDS_VARIABLE).map_or(DEFAULT_SECONDS, |text| text.parse().unwrap());
    let target = Target::start(None);
    for _ in 0..5 {
        target.is_well();
    }
    let before = target.resident_kib();
    let attacks: [Attack<'_>; 8] = [
        ("halves", &halves),
        ("slow bytes", &slow_bytes),
        ("declared lengths", &declared_lengths),
        ("wrong observations", &wrong_observations),
        ("deep nesting", &deep_nesting),
        ("vanishing", &vanishing),
        ("floods", &floods),
        ("random bytes", &|target| random_bytes(target, Duration::from_secs(seconds))),
    ];
    for (name, attack) in attacks {
        println!("{name}");
        attack(&target);
        target.is_well();
    }
    let after = target.resident_kib();
    println!("resident: {before} KiB before, {after} KiB after");
    assert!(after <= before + KEPT_KIB, "{before} KiB before, {after} KiB after");
}

#[test]
fn the_token_is_asked_for_by_every_protocol() {
    let target = Target::start(Some("s3cret"));
    target.is_well();
    for wrong in [None, Some(""), Some("s3cre"), Some("s3crets"), Some("S3CRET")] {
        for path in ["/predict", "/act"] {
            assert_eq!(target.post(path, b"{}", wrong), 401, "{path} {wrong:?}");
        }
        assert!(error(&target.zmq(observation(), wrong)).starts_with("Unauthorized"), "{wrong:?}");
        assert!(target.websocket(wrong).is_none(), "{wrong:?}");
    }
    target.is_well();
}
