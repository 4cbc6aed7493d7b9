//! A ZeroMQ client down to the bytes, as libzmq 4.3.5 was seen to send them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gr00t_serve::codec::{Limits, Value, msg_serializer};

/// Only a broken server makes a test wait this long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What a REQ socket sends after its greeting.
pub(crate) const HANDSHAKE: &[u8] = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0";

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub(crate) fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[8..16].copy_from_slice(b"\x01\x7f\x03\x01NULL");
    greeting
}

pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut stream = connect(address);
        stream.write_all(&greeting()).unwrap();
        stream.write_all(HANDSHAKE).unwrap();
        let mut theirs = [0; 64];
        stream.read_exact(&mut theirs).unwrap();
        assert_eq!((theirs[0], theirs[9], theirs[10], &theirs[12..16]), (0xff, 0x7f, 3, &b"NULL"[..]));
        let mut peer = Self(stream);
        let (flags, ready) = peer.frame();
        assert_eq!((flags, &ready[..]), (4, &b"\x05READY\x0bSocket-Type\0\0\0\x03REP"[..]));
        peer
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Sends a body in the stock envelope.
    pub(crate) fn send(&mut self, body: &[u8]) {
        let mut bytes = vec![1, 0];
        if let Ok(length) = u8::try_from(body.len()) {
            bytes.extend([0, length]);
        } else {
            bytes.push(2);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
        bytes.extend(body);
        self.write(&bytes);
    }

    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut flags = [0];
        self.0.read_exact(&mut flags).unwrap();
        let length = if flags[0] & 2 == 0 {
            let mut length = [0];
            self.0.read_exact(&mut length).unwrap();
            u64::from(length[0])
        } else {
            let mut length = [0; 8];
            self.0.read_exact(&mut length).unwrap();
            u64::from_be_bytes(length)
        };
        let mut body = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (flags[0] & !2, body)
    }

    /// The body of a reply in the stock envelope.
    pub(crate) fn reply(&mut self) -> Vec<u8> {
        assert_eq!(self.frame(), (1, Vec::new()));
        let (flags, body) = self.frame();
        assert_eq!(flags, 0);
        body
    }

    pub(crate) fn ask_bytes(&mut self, body: &[u8]) -> Value {
        self.send(body);
        msg_serializer::decode(&self.reply(), Limits::default()).unwrap()
    }

    pub(crate) fn ask(&mut self, pairs: Vec<(&str, Value)>) -> Value {
        self.ask_bytes(&msg_serializer::encode(&Value::map(pairs)))
    }

    pub(crate) fn act(&mut self, observation: Vec<(String, Value)>) -> Value {
        self.ask(vec![("endpoint", Value::text("get_action")), ("data", Value::Map(observation))])
    }

    /// The stock ping, byte for byte, and its stock answer.
    pub(crate) fn ping(&mut self) {
        self.send(b"\x81\xa8endpoint\xa4ping");
        assert_eq!(self.reply(), b"\x82\xa6status\xa2ok\xa7message\xb1Server is running");
    }
}

pub(crate) fn error(reply: &Value) -> String {
    let text = reply.get("error").and_then(Value::as_text);
    text.unwrap_or_else(|| panic!("no error: {reply:?}")).to_owned()
}
