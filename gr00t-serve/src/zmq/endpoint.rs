//! A request's bytes → its reply's bytes, by NVIDIA's rules. Sources: `gr00t/eval/service.py` and `robot.py` (N1.5),
//! `gr00t/policy/server_client.py` (N1.6, N1.7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tracing::Instrument;

use super::server::Options;
use crate::codec::{CodecError, Limits, Value, action_arrays, msg_serializer};
use crate::request_id;
use crate::service::{Robot, Service};
use crate::text::shown;
use crate::upstream::{self, UpstreamError};

/// What clients before September 2025 get, who send pickles and would unpickle anything else.
const PICKLE_REPLY: &[u8] = b"ERROR";
const UNAUTHORIZED: &str = "Unauthorized: Invalid API token";

/// What a peer has shown of itself. N1.5 and N1.6 ask for the modality config in the same words and want different answers.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Whether it has used what only N1.6 has.
    is_n16: AtomicBool,
}

/// A reply, and whether the server is to stop after it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) body: Vec<u8>,
    pub(super) kill: bool,
}

impl Reply {
    fn value(value: &Value) -> Self {
        Self { body: msg_serializer::encode(value), kill: false }
    }

    /// `{"error": …}`, which stock clients raise.
    pub(super) fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        tracing::warn!(protocol = "zmq", error = %message, "request refused");
        Self::value(&Value::map([("error", Value::Text(message))]))
    }
}

/// Answers one request; there is a reply whatever it is.
pub(super) async fn respond(service: &Service, options: &Options, peer: &Peer, body: Bytes) -> Reply {
    answered(service, options, peer, body).instrument(request_id::span(&request_id::new())).await
}

async fn answered(service: &Service, options: &Options, peer: &Peer, body: Bytes) -> Reply {
    if is_pickle(&body) {
        service.metrics().request("zmq", "pickle");
        tracing::warn!(
            protocol = "zmq",
            "a client sent a pickle: it is older than Isaac-GR00T's msgpack protocol of September 2025, upgrade it"
        );
        return Reply { body: PICKLE_REPLY.to_vec(), kill: false };
    }
    let limits = Limits { bytes: options.max_message_bytes, ..Limits::default() };
    match upstream::decode(body, move |body| msg_serializer::decode(body, limits)).await {
        Ok(Value::Map(request)) => match dispatch(service, options, peer, request).await {
            Ok(reply) => reply,
            Err(error) => Reply::error(error.to_string()),
        },
        Ok(other) => Reply::error(format!("request is {}, wanted a map", other.kind())),
        Err(error) => Reply::error(error.to_string()),
    }
}

/// A torch or zip archive, or a pickle of protocol 2 to 5. Neither start is a msgpack request.
fn is_pickle(body: &[u8]) -> bool {
    body.starts_with(b"PK\x03\x04") || matches!(body, [0x80, 2..=5, ..])
}

async fn dispatch(
    service: &Service,
    options: &Options,
    peer: &Peer,
    request: Vec<(String, Value)>,
) -> Result<Reply, UpstreamError> {
    let (mut endpoint, mut data, mut token) = (None, None, None);
    for (key, value) in request {
        match key.as_str() {
            "endpoint" => endpoint = Some(value),
            "data" => data = Some(value),
            "api_token" => token = Some(value),
            _ => {}
        }
    }
    if let Some(wanted) = &options.token {
        let shown = token.as_ref().and_then(Value::as_text).unwrap_or_default();
        if !wanted.matches(shown.as_bytes()) {
            service.metrics().request("zmq", "unauthorized");
            return Ok(Reply::error(UNAUTHORIZED));
        }
    }
    let endpoint = match &endpoint {
        None => "get_action",
        Some(Value::Text(endpoint)) => endpoint,
        Some(other) => return Ok(Reply::error(format!("endpoint is {}, wanted text", other.kind()))),
    };
    match endpoint {
        "get_action" => {
            service.metrics().request("zmq", "get_action");
            let started = Instant::now();
            let reply = get_action(service, peer, data.unwrap_or(Value::Null)).await?;
            let ms = started.elapsed().as_secs_f64() * 1e3;
            tracing::info!(protocol = "zmq", "get_action {ms:.1} ms");
            Ok(reply)
        }
        "ping" => {
            service.metrics().request("zmq", "ping");
            let message = Value::text("Server is running");
            Ok(Reply::value(&Value::map([("status", Value::text("ok")), ("message", message)])))
        }
        "get_modality_config" => {
            service.metrics().request("zmq", "get_modality_config");
            let robot = service.robot()?;
            Ok(Reply::value(&modality_config(&robot, peer.is_n16.load(Ordering::Relaxed))))
        }
        "reset" => {
            service.metrics().request("zmq", "reset");
            peer.is_n16.store(true, Ordering::Relaxed);
            // the policy keeps nothing between requests
            Ok(Reply::value(&Value::Map(Vec::new())))
        }
        "kill" if options.allow_kill => {
            service.metrics().request("zmq", "kill");
            tracing::warn!(protocol = "zmq", "a client stops the server");
            // upstream answers nil, which its own client trips over
            let reply = Reply::value(&Value::map([("status", Value::text("ok"))]));
            Ok(Reply { kill: true, ..reply })
        }
        "kill" => Ok(Reply::error("kill is not allowed on this server")),
        unknown => Ok(Reply::error(format!("Unknown endpoint: {}", shown(unknown)))),
    }
}

/// The action map; with N1.6's envelope `{"observation": …, "options": …}`, a list of it and an info map.
async fn get_action(service: &Service, peer: &Peer, data: Value) -> Result<Reply, UpstreamError> {
    let Value::Map(mut pairs) = data else {
        let problem = format!("data is {}, wanted a map of video, state and annotation keys", data.kind());
        return Err(CodecError::Observation(vec![problem]).into());
    };
    let Some(at) =
        pairs.iter().position(|(key, value)| key == "observation" && matches!(value, Value::Map(_)))
    else {
        let answer = upstream::answer(service, Value::Map(pairs)).await?;
        return Ok(Reply::value(&Value::Map(action_arrays(&answer.chunks, answer.batched, "action.")?)));
    };
    peer.is_n16.store(true, Ordering::Relaxed);
    let (_, mut observation) = pairs.swap_remove(at);
    // options are upstream's future; ours may come there too
    if let (Value::Map(observation), Some((_, Value::Map(own)))) =
        (&mut observation, pairs.into_iter().find(|(key, _)| key == "options"))
    {
        observation.extend(own.into_iter().filter(|(key, _)| key.starts_with("gr00t_tt.")));
    }
    // Gr00tPolicy takes nested maps and gives bare names, its simulation wrapper takes and gives flat ones
    let nested = matches!(observation.get("video").or(observation.get("state")), Some(Value::Map(_)));
    let prefix = if nested { "" } else { "action." };
    let answer = upstream::answer(service, observation).await?;
    let actions = action_arrays(&answer.chunks, true, prefix)?;
    let texts = |texts: Vec<String>| Value::List(texts.into_iter().map(Value::Text).collect());
    let info = Value::map([
        ("gr00t_tt.instruction", texts(answer.instructions)),
        ("gr00t_tt.warnings", texts(answer.warnings)),
    ]);
    Ok(Reply::value(&Value::List(vec![Value::Map(actions), info])))
}

/// Keys and time steps per modality. In N1.5 `as_json` is text and keys have their modality in front; in N1.6 it is a map and
/// they have not.
fn modality_config(robot: &Robot, is_n16: bool) -> Value {
    let config = |prefix: &str, keys: Vec<&str>, steps: usize| {
        let prefix = if is_n16 { "" } else { prefix };
        let keys: Vec<String> = keys.into_iter().map(|key| format!("{prefix}{key}")).collect();
        let as_json = if is_n16 {
            Value::map([
                ("delta_indices", Value::List((0..steps).map(|step| Value::Int(step as i128)).collect())),
                ("modality_keys", Value::List(keys.into_iter().map(Value::Text).collect())),
            ])
        } else {
            let steps: Vec<usize> = (0..steps).collect();
            Value::Text(serde_json::json!({ "delta_indices": steps, "modality_keys": keys }).to_string())
        };
        Value::map([("__ModalityConfig_class__", Value::Bool(true)), ("as_json", as_json)])
    };
    let names =
        |keys: &[crate::service::Key]| -> Vec<String> { keys.iter().map(|k| k.key.clone()).collect() };
    let (state, action) = (names(&robot.state), names(&robot.actions));
    let cameras: Vec<&str> = robot.cameras.iter().map(|camera| camera.key.as_str()).collect();
    Value::map([
        ("video", config("video.", cameras, 1)),
        ("state", config("state.", state.iter().map(String::as_str).collect(), 1)),
        ("action", config("action.", action.iter().map(String::as_str).collect(), robot.horizon)),
        ("language", config("", vec![robot.data_config.language_key.as_str()], 1)),
    ])
}
