//! The body of `POST /act`, NVIDIA's HTTP server; source: `gr00t/eval/http_server.py` (GR00T N1.5).

use super::error::{CodecError, Result};
use super::json_numpy;
use super::limits::Limits;
use super::value::Value;

/// A body, unwrapped.
#[derive(Debug, Clone, PartialEq)]
pub struct ActBody {
    /// The flat map of `video.`, `state.` and `annotation.` keys.
    pub observation: Value,
}

/// Reads `{"observation": {…}}`, or `{"encoded": "…"}` with the same as a string inside.
///
/// # Errors
/// [`CodecError`] if it is neither, or its contents are not what [`json_numpy::decode`] reads.
pub fn decode_act(body: &[u8], limits: Limits) -> Result<ActBody> {
    let mut message = json_numpy::decode(body, limits)?;
    if let Value::Map(pairs) = &message
        && let Some(encoded) = message.get("encoded")
    {
        let (Value::Text(text), 1) = (encoded, pairs.len()) else {
            return Err(CodecError::Json("\"encoded\" must be text, and the only key".to_owned()));
        };
        message = json_numpy::decode(text.as_bytes(), limits)?;
    }
    let Value::Map(pairs) = message else {
        return Err(CodecError::Json(format!("the body is {}, wanted an object", message.kind())));
    };
    let observation = pairs.into_iter().find(|(key, _)| key == "observation").map(|(_, value)| value);
    let observation = observation
        .ok_or_else(|| CodecError::Json("missing \"observation\" field in the body".to_owned()))?;
    Ok(ActBody { observation })
}
