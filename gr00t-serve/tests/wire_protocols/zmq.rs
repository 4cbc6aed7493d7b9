//! NVIDIA's ZeroMQ protocol on a socket.

use std::io::{Read, Write};

use gr00t_serve::auth::Token;
use gr00t_serve::codec::{Value, msg_serializer};
use gr00t_serve::origin::Origins;
use gr00t_serve::protocols::{Access, ProtocolOptions, Protocols};
use gr00t_serve::service::State;
use gr00t_serve::{websocket, zmq};

use crate::peer::{Peer, connect, error, greeting};
use crate::rig::{Rig, assert_same, expected, message, seeded};

fn rig_with(options: zmq::Options) -> Rig {
    Rig::with(options, websocket::Options::default())
}

#[test]
fn the_stock_dialogue_is_answered_byte_for_byte() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    peer.ping();
    peer.send(b"\x81\xa8endpoint\xa4nope");
    assert_eq!(peer.reply(), b"\x81\xa5error\xb6Unknown endpoint: nope");
}

#[test]
fn actions_are_the_bytes_of_the_rust_api() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    let wanted = expected(7);
    let reply = peer.act(seeded(message(None), 7));
    assert_same(&reply, "action.", &wanted, None);
    let Value::Map(pairs) = &reply else { panic!("{reply:?}") };
    let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["action.left_arm", "action.right_arm", "action.left_hand", "action.right_hand"]);
    // no endpoint is get_action
    let reply = peer.ask(vec![("data", Value::Map(seeded(message(None), 7)))]);
    assert_same(&reply, "action.", &wanted, None);
    assert_same(&peer.act(seeded(message(Some(2)), 7)), "action.", &wanted, Some(2));
}

#[test]
fn noise_is_fresh_unless_a_seed_is_given() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    assert_ne!(peer.act(message(None)), peer.act(message(None)));
    assert_eq!(peer.act(seeded(message(None), 1)), peer.act(seeded(message(None), 1)));
}

#[test]
fn the_envelope_of_n16_gets_actions_and_info() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    let mut modalities = [("video", Vec::new()), ("state", Vec::new()), ("language", Vec::new())];
    for (key, value) in message(Some(1)) {
        let (at, name) = match key.split_once('.').unwrap() {
            ("video", name) => (0, name),
            ("state", name) => (1, name),
            (_, name) => (2, name),
        };
        let value = if at == 2 { Value::List(vec![value]) } else { value };
        modalities[at].1.push((name.to_owned(), value));
    }
    let observation = Value::map(modalities.map(|(key, pairs)| (key, Value::Map(pairs))));
    let options = Value::map([("gr00t_tt.seed", Value::Int(7))]);
    let data = Value::map([("observation", observation), ("options", options)]);
    let Value::List(reply) = peer.ask(vec![("endpoint", Value::text("get_action")), ("data", data)]) else {
        panic!("no list");
    };
    assert_eq!(reply.len(), 2);
    assert_same(&reply[0], "", &expected(7), Some(1));
    assert_eq!(
        reply[1].get("gr00t_tt.instruction"),
        Some(&Value::List(vec![Value::text(r#"["pick the pear, don't drop it"]"#)]))
    );
    let reset =
        peer.ask(vec![("endpoint", Value::text("reset")), ("data", Value::map([("options", Value::Null)]))]);
    assert_eq!(reset, Value::Map(vec![]));
}

#[test]
fn the_modality_config_is_that_of_the_robot() {
    let rig = Rig::new();
    let reply = Peer::new(rig.zmq).ask_bytes(b"\x81\xa8endpoint\xb3get_modality_config");
    let json =
        |modality: &str| reply.get(modality).unwrap().get("as_json").unwrap().as_text().unwrap().to_owned();
    assert_eq!(json("video"), r#"{"delta_indices":[0],"modality_keys":["video.ego_view"]}"#);
    assert!(json("state").contains(r#""modality_keys":["state.left_arm","state.right_arm""#));
    assert!(json("action").starts_with(r#"{"delta_indices":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"#));
    assert!(json("language").contains("annotation.human"));
}

#[test]
fn garbage_gets_one_reply_and_the_connection_lives() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    for garbage in
        [&b""[..], b"\xc1", b"\xc0", b"hello", b"\xdd\x40\0\0\0", b"\x81\xa8endpoint\x01", &[0x91; 500]]
    {
        assert!(!error(&peer.ask_bytes(garbage)).is_empty());
        peer.ping();
    }
    for data in
        [Value::Null, Value::Int(3), Value::Map(vec![]), Value::map([("state.left_arm", Value::text("x"))])]
    {
        let reply = peer.ask(vec![("endpoint", Value::text("get_action")), ("data", data)]);
        assert!(!error(&reply).contains('\n'));
    }
    // two frames after the envelope, and none
    peer.write(&[1, 0, 1, 1, b'a', 0, 1, b'b']);
    let reply = peer.reply();
    assert!(String::from_utf8_lossy(&reply).contains("2 frames"));
    peer.write(&[0, 0]);
    assert!(String::from_utf8_lossy(&peer.reply()).contains("0 frames"));
    peer.ping();
}

#[test]
fn wrong_observations_name_key_got_and_wanted() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    let mut misspelt = message(None);
    misspelt[0].0 = "left_amr".into();
    let problem = error(&peer.act(misspelt));
    assert!(
        problem.contains("state left_arm is missing") && problem.contains("ignored keys: left_amr"),
        "{problem}"
    );
    let mut small = message(None);
    let frame =
        gr00t_serve::codec::Array::new(vec![1, 2, 2, 3], gr00t_serve::codec::Elements::U8(vec![0; 12]));
    small[4].1 = Value::Array(frame.unwrap());
    let problem = error(&peer.act(small));
    assert!(problem.contains("ego_view") && problem.contains("256"), "{problem}");
}

#[test]
fn pickles_get_the_word_that_their_clients_know() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    for pickle in [&b"PK\x03\x04\0\0"[..], b"\x80\x02}q\0.", b"\x80\x04cos\nsystem\n."] {
        peer.send(pickle);
        assert_eq!(peer.reply(), b"ERROR");
        peer.ping();
    }
}

#[test]
fn a_token_is_asked_for_on_every_endpoint() {
    let rig = rig_with(zmq::Options { token: Some(Token::new("s3cret").unwrap()), ..Default::default() });
    let mut peer = Peer::new(rig.zmq);
    let unauthorized = b"\x81\xa5error\xbfUnauthorized: Invalid API token";
    peer.send(b"\x81\xa8endpoint\xa4ping");
    assert_eq!(peer.reply(), unauthorized);
    for wrong in [Value::text("s3cre"), Value::Null, Value::Int(1)] {
        let request = vec![("endpoint", Value::text("ping")), ("api_token", wrong)];
        assert_eq!(error(&peer.ask(request)), "Unauthorized: Invalid API token");
    }
    let right = vec![("endpoint", Value::text("ping")), ("api_token", Value::text("s3cret"))];
    assert_eq!(peer.ask(right).get("status"), Some(&Value::text("ok")));
}

#[test]
fn kill_is_refused_unless_it_is_allowed() {
    let rig = Rig::new();
    let kill = b"\x81\xa8endpoint\xa4kill";
    assert!(error(&Peer::new(rig.zmq).ask_bytes(kill)).contains("not allowed"));
    Peer::new(rig.zmq).ping();

    let rig = rig_with(zmq::Options { allow_kill: true, ..Default::default() });
    assert_eq!(Peer::new(rig.zmq).ask_bytes(kill), Value::map([("status", Value::text("ok"))]));
    rig.runtime.block_on(rig.service.stopping());
    assert_eq!(rig.service.state(), State::Stopping);
}

#[test]
fn a_message_beyond_the_limit_is_answered_before_it_is_sent() {
    let rig = rig_with(zmq::Options { max_message_bytes: 1 << 20, ..Default::default() });
    let mut peer = Peer::new(rig.zmq);
    peer.write(b"\x01\x00\x02\0\0\0\0\x40\0\0\0"); // 1 GiB is declared
    assert!(String::from_utf8_lossy(&peer.reply()).contains("1073741824"));
    Peer::new(rig.zmq).ping();

    let mut peer = Peer::new(rig.zmq);
    peer.send(&vec![0; 2 << 20]);
    assert!(String::from_utf8_lossy(&peer.reply()).contains("at most 1048576"));
    peer.ping();
}

#[test]
fn a_message_of_many_frames_is_said_to_be_one() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    peer.write(&[&b"\x01\0".repeat(40)[..], b"\0\x01a"].concat());
    assert!(String::from_utf8_lossy(&peer.reply()).contains("more than 16 frames"));
    peer.ping();
}

#[test]
fn a_clients_text_is_one_short_line_in_answers() {
    const FORGED: &str = "x\n2026-11-30T12:00:00Z  INFO POST /predict 200\x1b[31m";
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    let endpoint = |text: String| vec![("endpoint", Value::Text(text))];
    let keys = |count: usize| (0..count).map(|i| (format!("k{i}"), Value::Null)).collect::<Vec<_>>();
    let mut said = vec![
        error(&peer.ask(endpoint(FORGED.into()))),
        error(&peer.ask(endpoint("y".repeat(10_000)))),
        error(&peer.ask(vec![(FORGED, Value::Null)])),
        error(&peer.act(keys(300))),
    ];
    for key in [FORGED.to_owned(), "z".repeat(10_000)] {
        for data in [
            Value::map([(key.clone(), Value::Null)]),
            Value::map([("state", Value::map([(key, Value::Null)]))]),
        ] {
            said.push(error(&peer.ask(vec![("data", data)])));
        }
    }
    for text in said {
        assert!(text.len() < 400 && !text.contains(char::is_control), "{text}");
    }
}

#[test]
fn unfinished_messages_leave_room_for_small_ones() {
    const MESSAGE: usize = 2 << 20;
    let rig = rig_with(zmq::Options { max_message_bytes: MESSAGE, ..Default::default() });
    // a mebibyte of each is not counted, and the room is four messages: eight fit
    let mut peers: Vec<Peer> = (0..12).map(|_| Peer::new(rig.zmq)).collect();
    for peer in &mut peers {
        let head = [&b"\x01\0\x02"[..], &(MESSAGE as u64).to_be_bytes()].concat();
        // refused in the middle of it, if it is not one of the eight
        let _ = peer.0.write_all(&[&head[..], &vec![0; MESSAGE - 1]].concat());
        peer.0.set_nonblocking(true).unwrap();
    }
    let is_open = |peer: &mut Peer| {
        peer.0.read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let until = std::time::Instant::now() + crate::peer::PATIENCE;
    while peers.len() > 8 {
        peers.retain_mut(is_open);
        assert!(std::time::Instant::now() < until, "{} are still there", peers.len());
        std::thread::yield_now();
    }
    Peer::new(rig.zmq).ping();
    peers.retain_mut(is_open);
    assert!(peers.len() >= 7, "{} are still there", peers.len());
}

#[test]
fn peers_that_stall_or_vanish_delay_nobody() {
    let rig = Rig::new();
    let _silent = connect(rig.zmq);
    let mut half_greeting = connect(rig.zmq);
    half_greeting.write_all(&greeting()[..20]).unwrap();
    let mut half_message = Peer::new(rig.zmq);
    half_message.write(b"\x01\x00\x00\xff123");
    let mut http = connect(rig.zmq);
    http.write_all(&[b'G'; 64]).unwrap();

    rig.gate.shut();
    let mut vanishing = Peer::new(rig.zmq);
    let request = msg_serializer::encode(&Value::map([("data", Value::Map(message(None)))]));
    vanishing.send(&request);
    let mut busy = Peer::new(rig.zmq);
    busy.send(&request);
    drop(vanishing);
    Peer::new(rig.zmq).ping();
    // libzmq's heartbeat is answered while the request is on the device
    busy.write(b"\x04\x0a\x04PING\0\x0aabc");
    assert_eq!(busy.frame(), (4, b"\x04PONGabc".to_vec()));
    rig.gate.open();
    assert!(busy.reply().len() > 1000);
    busy.ping();
}

#[test]
fn an_envelope_of_several_frames_comes_back() {
    let rig = Rig::new();
    let mut peer = Peer::new(rig.zmq);
    let mut bytes = b"\x01\x02id\x01\x00\x00\x0f".to_vec();
    bytes.extend(b"\x81\xa8endpoint\xa4ping");
    peer.write(&bytes);
    assert_eq!(peer.frame(), (1, b"id".to_vec()));
    assert!(peer.reply().starts_with(b"\x82\xa6status"));
}

#[test]
fn a_socket_that_no_rep_serves_is_told_so() {
    let rig = Rig::new();
    let mut stream = connect(rig.zmq);
    stream.write_all(&greeting()).unwrap();
    stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB").unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.ends_with(b"\x05ERROR\x14this socket is a REP"), "{all:?}");
}

#[test]
fn when_the_service_stops_what_runs_is_finished() {
    let rig = Rig::new();
    rig.gate.shut();
    let mut peer = Peer::new(rig.zmq);
    peer.send(&msg_serializer::encode(&Value::map([("data", Value::Map(message(None)))])));
    let deadline = std::time::Instant::now() + crate::peer::PATIENCE;
    while rig.service.in_flight() == 0 {
        assert!(std::time::Instant::now() < deadline, "the request never arrived");
        std::thread::yield_now();
    }
    rig.service.stop();
    rig.gate.open();
    assert!(peer.reply().len() > 1000);
    let mut rest = Vec::new();
    peer.0.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

#[test]
fn ports_are_taken_at_once_and_refuse_until_the_start() {
    let rig = Rig::new();
    let _inside = rig.runtime.enter();
    let options = ProtocolOptions { zmq_port: Some(0), ..Default::default() };
    let access = Access {
        host: [127, 0, 0, 1].into(),
        token: None,
        max_message_bytes: 1 << 20,
        max_connections: 4,
        origins: Origins::default(),
    };
    let protocols = Protocols::bind(&options, &access).unwrap();
    let (Some(address), None) = protocols.addresses().unwrap() else { panic!("{protocols:?}") };
    assert!(std::net::TcpStream::connect(address).is_err());

    let servers = protocols.start(&rig.service).unwrap();
    Peer::new(address).ping();
    let again = ProtocolOptions { zmq_port: Some(address.port()), ..Default::default() };
    let refusal = Protocols::bind(&again, &access).unwrap_err().to_string();
    assert!(refusal.contains(&address.to_string()), "{refusal}");
    rig.service.stop();
    rig.runtime.block_on(servers.join_all());
}
