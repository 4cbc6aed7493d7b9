//! openpi's protocol on a socket.

use std::io::{Read, Write};
use std::net::TcpStream;

use gr00t_serve::auth::Token;
use gr00t_serve::codec::msgpack_numpy::{self, Dialect, Names};
use gr00t_serve::codec::{Array, Elements, Limits, Value};
use gr00t_serve::{websocket, zmq};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::peer::connect;
use crate::rig::{Rig, assert_same, expected, message, seeded};

type Client = WebSocket<TcpStream>;

/// A client that has read the metadata.
fn open(rig: &Rig) -> Client {
    let (mut client, _) = client::client("ws://127.0.0.1/", connect(rig.websocket)).unwrap();
    let metadata = binary(&mut client).0;
    assert_eq!(metadata.get("action_horizon"), Some(&Value::Int(16)));
    assert_eq!(metadata.get("action_keys").and_then(|keys| keys.get("left_arm")), Some(&Value::Int(7)));
    client
}

fn binary(client: &mut Client) -> (Value, Dialect) {
    match client.read().unwrap() {
        Message::Binary(bytes) => msgpack_numpy::decode(&bytes, Limits::default()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn send(client: &mut Client, pairs: Vec<(String, Value)>, dialect: Dialect) {
    client.send(Message::Binary(msgpack_numpy::encode(&Value::Map(pairs), dialect).into())).unwrap();
}

#[test]
fn metadata_comes_first_and_actions_are_the_bytes_of_the_rust_api() {
    let rig = Rig::new();
    let mut client = open(&rig);
    let wanted = expected(7);
    for round in 0..2 {
        send(&mut client, seeded(message(None), 7), Dialect::default());
        let (reply, dialect) = binary(&mut client);
        assert_eq!(dialect, Dialect::default());
        assert_same(&reply, "action.", &wanted, None);
        let Some(Value::Array(actions)) = reply.get("actions") else { panic!("{reply:?}") };
        assert_eq!(actions.shape(), [16, 26]);
        let Elements::F32(values) = actions.elements() else { panic!("{:?}", actions.dtype()) };
        let second: Vec<f32> = wanted.groups.iter().flat_map(|group| group.step(1).to_vec()).collect();
        assert_eq!(values[26..52], second);
        let timing = reply.get("server_timing").unwrap();
        assert!(matches!(timing.get("infer_ms"), Some(Value::Float(ms)) if *ms > 0.0));
        assert_eq!(timing.get("prev_total_ms").is_some(), round == 1);
    }
}

#[test]
fn openpi_s_own_names_give_the_same_actions() {
    let rig = Rig::new();
    let mut client = open(&rig);
    let mut vector = Vec::new();
    let mut image = None;
    for (key, value) in message(None) {
        match value {
            Value::Array(array) if key.starts_with("state.") => match array.into_parts().1 {
                Elements::F64(values) => vector.extend(values),
                other => panic!("{other:?}"),
            },
            Value::Array(array) => image = Some(array.into_parts()),
            _ => {}
        }
    }
    let (mut shape, pixels) = image.unwrap();
    shape.remove(0);
    let length = vector.len();
    let state = Array::new(vec![length], Elements::F64(vector)).unwrap();
    let pairs = vec![
        ("observation/image".to_owned(), Value::Array(Array::new(shape, pixels).unwrap())),
        ("observation/state".to_owned(), Value::Array(state)),
        ("prompt".to_owned(), Value::text(crate::rig::INSTRUCTION)),
    ];
    send(&mut client, seeded(pairs, 7), Dialect::default());
    assert_same(&binary(&mut client).0, "action.", &expected(7), None);
}

#[test]
fn the_reply_is_in_the_dialect_of_the_request() {
    let rig = Rig::new();
    let mut client = open(&rig);
    for (names, bytes_keys) in [(Names::MsgpackNumpy, true), (Names::OpenPi, false)] {
        let dialect = Dialect { names, bytes_keys };
        send(&mut client, message(None), dialect);
        assert_eq!(binary(&mut client).1, dialect);
    }
}

#[test]
fn an_error_is_a_text_frame_and_the_end() {
    let rig = Rig::new();
    let text = || Message::text("hello");
    let garbage = || Message::Binary(vec![0xc1].into());
    let empty = || Message::Binary(vec![0x80].into());
    for bad in [text(), garbage(), empty()] {
        let mut client = open(&rig);
        client.send(bad).unwrap();
        assert!(matches!(client.read().unwrap(), Message::Text(_)));
        match client.read().unwrap() {
            Message::Close(Some(frame)) => assert_eq!(frame.code, CloseCode::Error),
            other => panic!("{other:?}"),
        }
    }
    let mut client = open(&rig);
    send(&mut client, message(None), Dialect::default());
    binary(&mut client);
}

#[test]
fn healthz_is_answered_on_the_same_port() {
    let rig = Rig::new();
    let mut stream = connect(rig.websocket);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nOK\n"), "{answer}");
}

#[test]
fn a_token_is_asked_for_in_the_handshake() {
    let options = websocket::Options { token: Some(Token::new("s3cret").unwrap()), ..Default::default() };
    let rig = Rig::with(zmq::Options::default(), options);
    let try_with = |header: Option<&str>| {
        let mut request = "ws://127.0.0.1/".into_client_request().unwrap();
        if let Some(header) = header {
            request.headers_mut().insert("authorization", header.parse().unwrap());
        }
        client::client(request, connect(rig.websocket)).is_ok()
    };
    assert!(try_with(Some("Api-Key s3cret")) && try_with(Some("Bearer s3cret")));
    assert!(!try_with(None) && !try_with(Some("Api-Key s3cre")));
}

#[test]
fn pages_of_other_sites_get_no_connection() {
    let options = websocket::Options {
        origins: ["http://robot-pc:8000".parse().unwrap()].into_iter().collect(),
        ..Default::default()
    };
    let rig = Rig::with(zmq::Options::default(), options);
    let status = |origin: &str| {
        let mut request = format!("ws://{}/", rig.websocket).into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        match client::client(request, connect(rig.websocket)) {
            Ok((_, response)) => response.status().as_u16(),
            Err(HandshakeError::Failure(Error::Http(response))) => response.status().as_u16(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(status(&format!("http://{}", rig.websocket)), 101);
    assert_eq!(status("http://robot-pc:8000"), 101);
    for origin in ["http://evil.example", "null", "http://localhost:3000"] {
        assert_eq!(status(origin), 403, "{origin}");
    }
}

#[test]
fn pings_and_new_handshakes_are_answered_while_the_device_is_busy() {
    let rig = Rig::new();
    rig.gate.shut();
    let mut busy = open(&rig);
    send(&mut busy, message(None), Dialect::default());
    let _half = {
        let mut half = connect(rig.websocket);
        half.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        half
    };
    busy.send(Message::Ping(vec![1, 2].into())).unwrap();
    assert_eq!(busy.read().unwrap(), Message::Pong(vec![1, 2].into()));
    drop(open(&rig));
    rig.gate.open();
    binary(&mut busy);
}

fn code(client: &mut Client) -> CloseCode {
    match client.read().unwrap() {
        Message::Close(Some(frame)) => frame.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_close_is_answered_and_broken_frames_are_told_why() {
    let rig = Rig::new();
    let mut client = open(&rig);
    client.close(Some(CloseFrame { code: CloseCode::Normal, reason: "done".into() })).unwrap();
    assert_eq!(code(&mut client), CloseCode::Normal);
    assert!(matches!(client.read(), Err(Error::ConnectionClosed)));

    // not masked, an opcode that does not exist, a reserved bit, a text that is not UTF-8
    let cases: [(&[u8], CloseCode); 4] = [
        (b"\x82\x01a", CloseCode::Protocol),
        (b"\x83\x81\0\0\0\0a", CloseCode::Protocol),
        (b"\xc2\x81\0\0\0\0a", CloseCode::Protocol),
        (b"\x81\x82\0\0\0\0\xff\xfe", CloseCode::Invalid),
    ];
    for (frame, wanted) in cases {
        let mut client = open(&rig);
        client.get_mut().write_all(frame).unwrap();
        assert_eq!(code(&mut client), wanted, "{frame:x?}");
    }
}

#[test]
fn what_opens_no_websocket_is_answered_in_http() {
    let rig = Rig::new();
    let long = format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(40_000));
    for (head, status) in [
        ("POST / HTTP/1.1\r\nhost: x\r\n\r\n", "405"),
        ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", "426"),
        ("nonsense\r\n\r\n", "400"),
        (long.as_str(), "431"),
    ] {
        let mut stream = connect(rig.websocket);
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
}

#[test]
fn unfinished_messages_leave_room_for_small_ones() {
    const MESSAGE: usize = 2 << 20;
    let options = websocket::Options { max_message_bytes: MESSAGE, ..Default::default() };
    let rig = Rig::with(zmq::Options::default(), options);
    // a mebibyte of each is not counted, and the room is four messages: eight fit
    let mut clients: Vec<Client> = (0..12).map(|_| open(&rig)).collect();
    for client in &mut clients {
        let head = [&b"\x82\xff"[..], &(MESSAGE as u64).to_be_bytes(), b"mask"].concat();
        client.get_mut().write_all(&[&head[..], &vec![0; MESSAGE - 1]].concat()).unwrap();
        client.get_mut().set_nonblocking(true).unwrap();
    }
    let until = std::time::Instant::now() + crate::peer::PATIENCE;
    while clients.len() > 8 {
        clients.retain_mut(|client| match client.read() {
            Ok(Message::Close(Some(frame))) => {
                assert_eq!(frame.code, CloseCode::Again);
                false
            }
            Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => true,
            other => panic!("{other:?}"),
        });
        assert!(std::time::Instant::now() < until, "{} are still there", clients.len());
        std::thread::yield_now();
    }
    open(&rig);
}

#[test]
fn a_message_beyond_the_limit_closes_the_connection() {
    let options = websocket::Options { max_message_bytes: 1000, ..Default::default() };
    let rig = Rig::with(zmq::Options::default(), options);
    let mut client = open(&rig);
    // far more than the sockets' buffers hold: the server must go on reading for its answer to arrive
    client.send(Message::Binary(vec![0; 16 << 20].into())).unwrap();
    match client.read().unwrap() {
        Message::Close(Some(frame)) => assert_eq!(frame.code, CloseCode::Size),
        other => panic!("{other:?}"),
    }
    open(&rig);
}
