//! One message of NVIDIA's or openpi's protocols through the [`Service`]: strict image size, and fresh noise unless the
//! message brings a seed, as upstream.

use gr00t_host::ActionChunk;
use gr00t_host::noise::{Noise, fresh_seed};
use tokio::sync::Semaphore;

use crate::codec::{Batch, CodecError, RobotKeys, Value, observations};
use crate::service::{Request, Robot, Rules, Service, ServiceError, Timings, blocking};

/// Messages up to this size are decoded where they arrive; larger ones on a thread of their own.
const INLINE_BYTES: usize = 16 << 10;
/// Messages that are decoded at a time.
const MAX_DECODING: usize = 4;

/// What a message got.
#[derive(Debug)]
pub(crate) struct Answer {
    /// One per observation of the message.
    pub(crate) chunks: Vec<ActionChunk>,
    /// Whether the reply has a batch dimension.
    pub(crate) batched: bool,
    /// The instructions as they stood in the prompts.
    pub(crate) instructions: Vec<String>,
    /// One line each.
    pub(crate) warnings: Vec<String>,
    /// Of the last observation.
    pub(crate) timings: Timings,
}

/// Why a message got no actions. One line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("{error}{}", ignored_note(.ignored))]
    Service { error: ServiceError, ignored: Vec<String> },
}

/// Keys that nobody knew are often a missing one misspelt.
fn ignored_note(ignored: &[String]) -> String {
    if ignored.is_empty() { String::new() } else { format!("; ignored keys: {}", ignored.join(", ")) }
}

impl From<ServiceError> for UpstreamError {
    fn from(error: ServiceError) -> Self {
        Self::Service { error, ignored: Vec::new() }
    }
}

impl From<&Robot> for RobotKeys {
    fn from(robot: &Robot) -> Self {
        Self {
            cameras: robot.cameras.iter().map(|camera| camera.key.clone()).collect(),
            state: robot.state.iter().map(|key| (key.key.clone(), key.dim)).collect(),
        }
    }
}

/// The actions of every observation in `message`.
pub(crate) async fn answer(service: &Service, message: Value) -> Result<Answer, UpstreamError> {
    let robot = service.robot()?;
    let batch = observations(message, &RobotKeys::from(&*robot))?;
    answer_batch(service, batch).await
}

/// The actions of every observation in `batch`, one after the other.
pub(crate) async fn answer_batch(service: &Service, batch: Batch) -> Result<Answer, UpstreamError> {
    let Batch { observations, batched, seed, ignored } = batch;
    let requests = observations
        .into_iter()
        .map(|observation| {
            let noise = Noise::Seed(seed.unwrap_or_else(fresh_seed));
            Request::new(observation).rules(Rules::Upstream).noise(noise)
        })
        .collect();
    let mut answer = Answer {
        chunks: Vec::new(),
        batched,
        instructions: Vec::new(),
        warnings: ignored.iter().map(|key| format!("{key} is unknown, ignored")).collect(),
        timings: Timings::default(),
    };
    let replies = service.predict_all(requests).await;
    for reply in replies.map_err(|error| UpstreamError::Service { error, ignored })? {
        answer.chunks.push(reply.chunk);
        answer.instructions.push(reply.prompt.language);
        answer.warnings.extend(reply.warnings);
        answer.timings = reply.timings;
    }
    Ok(answer)
}

/// Decodes without holding up the sockets.
pub(crate) async fn decode<T: Send + 'static>(
    message: bytes::Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, CodecError> + Send + 'static,
) -> Result<T, UpstreamError> {
    /// A tree of values takes many times its bytes, and what the message asks for, or whether it may, is known only after.
    static DECODING: Semaphore = Semaphore::const_new(MAX_DECODING);

    if message.len() <= INLINE_BYTES {
        return Ok(read(&message)?);
    }
    let _turn = DECODING.acquire().await.map_err(|_| ServiceError::Stopping)?;
    Ok(blocking(move || read(&message)).await??)
}
