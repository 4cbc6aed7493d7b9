//! What the log says of requests: an id on every line of theirs, how long they took, why they were refused.

use std::io::{Read, Write};

use gr00t_serve::codec::{Value, msgpack_numpy};
use msgpack_numpy::Dialect;
use tokio_tungstenite::tungstenite::{Message, client};

use crate::abuse::observation;
use crate::peer::{Peer, connect};
use crate::server::{MINI, PROGRAM, READY, Server, command};

/// The id of the request that `line` is about.
fn id(line: &str) -> &str {
    let (_, rest) = line.split_once("request{id=").unwrap_or_else(|| panic!("no id: {line}"));
    rest.split_once('}').unwrap().0.trim_matches('"')
}

#[test]
fn every_protocols_requests_have_an_id_in_the_log() {
    let mut run = command(PROGRAM);
    run.args(MINI).args(["--port", "0", "--zmq-port", "0", "--websocket-port", "0", "--warmup-runs", "1"]);
    let mut server = Server::of(run);
    let [http, zmq, websocket] = ["HTTP", "ZeroMQ", "WebSocket"].map(|protocol| server.address(protocol));
    server.until(READY);

    let mut stream = connect(http);
    let body = r#"{"images":{},"state":{},"instruction":"x"}"#;
    write!(
        stream,
        "POST /predict HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let reason = server.until("invalid: ");
    assert_eq!(id(&reason), "mine");
    assert!(reason.contains("ego_view"), "{reason}");
    assert_eq!(id(&server.until("POST /predict 400")), "mine");

    let mut peer = Peer::new(zmq);
    peer.ask(vec![("endpoint", Value::text("get_action")), ("data", Value::Map(observation()))]);
    let answered = id(&server.until("get_action")).to_owned();
    peer.ask(vec![("endpoint", Value::text("get_acton"))]);
    let refused = id(&server.until("request refused")).to_owned();

    let (mut socket, _) = client::client("ws://127.0.0.1/", connect(websocket)).unwrap();
    socket.read().unwrap();
    let message = |value: &Value| Message::Binary(msgpack_numpy::encode(value, Dialect::default()).into());
    socket.send(message(&Value::Map(observation()))).unwrap();
    socket.read().unwrap();
    let inferred = id(&server.until("infer ")).to_owned();
    socket.send(message(&Value::Map(Vec::new()))).unwrap();
    let unread = id(&server.until("request refused")).to_owned();

    let ids = [answered, refused, inferred, unread];
    assert!(ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)), "{ids:?}");
    let (_, status) = server.stop();
    assert!(status.success());
}
