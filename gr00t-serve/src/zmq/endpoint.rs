//! A request's bytes → its reply's bytes, by NVIDIA's rules. Sources: `gr00t/eval/service.py` and `robot.py` (N1.5),
//! `gr00t/policy/server_client.py` (N1.6, N1.7).

use bytes::Bytes;

use super::server::Options;
use crate::codec::{CodecError, Limits, Value, action_arrays, msg_serializer};
use crate::service::{Robot, Service};
use crate::upstream::{self, UpstreamError};

/// What clients before September 2025 get, who send pickles and would unpickle anything else.
const PICKLE_REPLY: &[u8] = b"ERROR";
const UNAUTHORIZED: &str = "Unauthorized: Invalid API token";

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
pub(super) async fn respond(service: &Service, options: &Options, body: Bytes) -> Reply {
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
        Ok(Value::Map(request)) => match dispatch(service, options, request).await {
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
            get_action(service, data.unwrap_or(Value::Null)).await
        }
        "ping" => {
            service.metrics().request("zmq", "ping");
            let message = Value::text("Server is running");
            Ok(Reply::value(&Value::map([("status", Value::text("ok")), ("message", message)])))
        }
        "get_modality_config" => {
            service.metrics().request("zmq", "get_modality_config");
            let robot = service.robot()?;
            Ok(Reply::value(&modality_config(&robot)))
        }
        "reset" => {
            service.metrics().request("zmq", "reset");
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
        unknown => {
            let shown: String = unknown.chars().take(64).collect();
            Ok(Reply::error(format!("Unknown endpoint: {shown}")))
        }
    }
}

/// The action map; with N1.6's envelope `{"observation": …, "options": …}`, a list of it and an info map.
async fn get_action(service: &Service, data: Value) -> Result<Reply, UpstreamError> {
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

/// Keys and time steps per modality, in the form of N1.5, whose `as_json` is text.
fn modality_config(robot: &Robot) -> Value {
    let config = |prefix: &str, keys: Vec<&str>, steps: usize| {
        let keys: Vec<String> = keys.into_iter().map(|key| format!("{prefix}{key}")).collect();
        let steps: Vec<usize> = (0..steps).collect();
        let json = serde_json::json!({ "delta_indices": steps, "modality_keys": keys });
        Value::map([
            ("__ModalityConfig_class__", Value::Bool(true)),
            ("as_json", Value::Text(json.to_string())),
        ])
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
