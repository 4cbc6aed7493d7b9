//! One client: metadata, then its observations one at a time, while pings are answered and its leaving is noticed.

use std::future::Future;
use std::io::Cursor;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as WsError, Message};
use tracing::{Instrument, Span};

use super::counted::{Counted, Counter};
use super::head;
use super::server::Options;
use crate::codec::msgpack_numpy::{self, Dialect};
use crate::codec::{CodecError, Limits, Value, action_arrays, action_matrix};
use crate::request_id;
use crate::room::Share;
use crate::service::{Robot, Service, State};
use crate::upstream::{self, UpstreamError};

/// Longest time for the request head and the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Longest time for a client to take a frame.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// Silence after which a client is pinged, and after which it is given up.
const QUIET: Duration = Duration::from_mins(1);
/// Longest time for a client to end its side after ours has ended.
const LINGER_LIMIT: Duration = Duration::from_secs(5);

/// Why a connection ended other than by the client's leaving.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    WebSocket(Box<WsError>),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("no {0} within {secs} s", secs = .1.as_secs())]
    Slow(&'static str, Duration),
}

impl From<WsError> for Ended {
    fn from(error: WsError) -> Self {
        Self::WebSocket(Box::new(error))
    }
}

type Work<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, UpstreamError>> + Send + 'a>>;

/// Serves one client until it leaves or the server stops.
pub(super) async fn serve(
    stream: TcpStream,
    service: &Service,
    options: &Options,
    share: Share,
) -> Result<(), Ended> {
    stream.set_nodelay(true)?;
    let (mut read, mut write) = stream.into_split();
    let robot = timeout(HANDSHAKE_LIMIT, async {
        let Some(head) = head::read(&mut read).await? else {
            write
                .write_all(&head::answer("431 Request Header Fields Too Large", "too long a head\n"))
                .await?;
            return Ok(None);
        };
        let plain = match (head::path(&head), service.robot()) {
            (Some("/healthz"), _) if service.state() == State::Ready => head::answer("200 OK", "OK\n"),
            (Some("/healthz"), _) => {
                head::answer("503 Service Unavailable", &format!("{}\n", service.state().name()))
            }
            (_, Err(error)) => head::answer("503 Service Unavailable", &format!("{error}\n")),
            (_, Ok(robot)) => match head::refusal(&head) {
                Some(refusal) => refusal,
                None => return Ok(Some((head, robot))),
            },
        };
        write.write_all(&plain).await?;
        Ok::<_, Ended>(None)
    })
    .await
    .map_err(|_| Ended::Slow("handshake", HANDSHAKE_LIMIT))??;
    let Some((head, robot)) = robot else {
        // as below
        let _ = timeout(LINGER_LIMIT, linger(&mut tokio::io::join(read, write))).await;
        return Ok(());
    };

    let counter = Counter::new(share);
    let read = Counted { stream: Cursor::new(head).chain(read), counter: counter.clone() };
    let stream = tokio::io::join(read, write);
    let config = WebSocketConfig::default()
        .max_message_size(Some(options.max_message_bytes))
        .max_frame_size(Some(options.max_message_bytes));
    #[expect(clippy::result_large_err, reason = "tungstenite's signature")]
    let authorize = |request: &Request, response: Response| authorize(request, response, options);
    let handshake = tokio_tungstenite::accept_hdr_async_with_config(stream, authorize, Some(config));
    let socket = timeout(HANDSHAKE_LIMIT, handshake)
        .await
        .map_err(|_| Ended::Slow("handshake", HANDSHAKE_LIMIT))??;
    let (mut output, mut input) = socket.split();
    send(&mut output, Message::Binary(msgpack_numpy::encode(&metadata(&robot), Dialect::default()).into()))
        .await?;
    let ended = converse(&mut output, &mut input, &counter, service, options).await;
    counter.stop();
    if let Ok(mut socket) = output.reunite(input) {
        // what a client is still sending would otherwise cost it the frames that it has not read
        let _ = timeout(LINGER_LIMIT, linger(socket.get_mut())).await;
    }
    ended
}

/// Ends our side, then throws away what still comes until the client ends its own.
async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.shutdown().await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}

#[expect(clippy::result_large_err, reason = "tungstenite's signature")]
fn authorize(request: &Request, response: Response, options: &Options) -> Result<Response, ErrorResponse> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    if let Err(what) = options.origins.check(header("origin"), header("host"), options.token.is_some()) {
        return Err(refusal(StatusCode::FORBIDDEN, &what));
    }
    let Some(token) = &options.token else { return Ok(response) };
    if header("authorization").is_some_and(|shown| token.matches_header(shown)) {
        return Ok(response);
    }
    Err(refusal(StatusCode::UNAUTHORIZED, "a token is wanted"))
}

fn refusal(status: StatusCode, what: &str) -> ErrorResponse {
    let mut refusal = ErrorResponse::new(Some(format!("{what}\n")));
    *refusal.status_mut() = status;
    refusal
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut SplitSink<WebSocketStream<S>, Message>,
    input: &mut SplitStream<WebSocketStream<S>>,
    counter: &Counter,
    service: &Service,
    options: &Options,
) -> Result<(), Ended> {
    let mut work: Option<Work<'_>> = None;
    let mut waiting: Option<(Bytes, Option<Share>)> = None;
    let mut heard = tokio::time::Instant::now();
    let mut asked = false;
    let mut stopping = false;
    let mut prev_total_ms = None;
    let mut started = Instant::now();
    let mut span = Span::none();
    loop {
        if work.is_none() {
            if let Some((message, share)) = waiting.take() {
                started = Instant::now();
                service.metrics().request("websocket", "infer");
                span = request_id::span(&request_id::new());
                let infer = async move {
                    let _share = share;
                    infer(service, options, message, prev_total_ms).await
                };
                work = Some(Box::pin(infer.instrument(span.clone())));
            } else if stopping {
                return close(output, CloseCode::Away, "the server stops").await;
            }
        }
        tokio::select! {
            // a second observation waits in the socket, not here
            message = input.next(), if waiting.is_none() => {
                (heard, asked) = (tokio::time::Instant::now(), false);
                match message {
                    Some(Ok(Message::Close(_))) => {
                        // tungstenite has the answer ready; it says that the connection is closed once that is out
                        let _ = timeout(SEND_LIMIT, output.flush()).await;
                        return Ok(());
                    }
                    None | Some(Err(WsError::ConnectionClosed)) => return Ok(()),
                    Some(Ok(Message::Binary(message))) => waiting = Some((message, counter.take())),
                    Some(Ok(Message::Text(_))) => {
                        let error = CodecError::Msgpack("got a text frame, wanted a binary one".to_owned());
                        return refuse(output, &error.into()).await;
                    }
                    Some(Ok(_)) => drop(counter.take()),
                    Some(Err(error)) => {
                        if let Some(code) = close_code(&error) {
                            close(output, code, &error.to_string()).await?;
                        }
                        return Err(error.into());
                    }
                }
            }
            reply = finished(&mut work), if work.is_some() => {
                work = None;
                match reply {
                    Ok(reply) => send(output, Message::Binary(reply.into())).await?,
                    Err(error) => return refuse(output, &error).instrument(span).await,
                }
                let total_ms = milliseconds(started.elapsed());
                span.in_scope(|| tracing::info!(protocol = "websocket", "infer {total_ms:.1} ms"));
                prev_total_ms = Some(total_ms);
                heard = tokio::time::Instant::now();
            }
            () = tokio::time::sleep_until(heard + QUIET), if work.is_none() => {
                if asked {
                    return Err(Ended::Slow("sign of life", QUIET));
                }
                send(output, Message::Ping(Bytes::new())).await?;
                (heard, asked) = (tokio::time::Instant::now(), true);
            }
            () = service.stopping(), if !stopping => stopping = true,
        }
    }
}

/// What a client hears whose bytes cannot be read on; nothing, if it is gone.
fn close_code(error: &WsError) -> Option<CloseCode> {
    match error {
        WsError::Capacity(CapacityError::MessageTooLong { .. }) => Some(CloseCode::Size),
        WsError::Utf8(_) => Some(CloseCode::Invalid),
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        WsError::Protocol(_) => Some(CloseCode::Protocol),
        WsError::Io(error) if error.kind() == std::io::ErrorKind::OutOfMemory => Some(CloseCode::Again),
        _ => None,
    }
}

/// The work's result; never, if there is none.
async fn finished(work: &mut Option<Work<'_>>) -> Result<Vec<u8>, UpstreamError> {
    match work {
        Some(work) => work.as_mut().await,
        None => std::future::pending().await,
    }
}

/// One observation → the frame with its actions.
async fn infer(
    service: &Service,
    options: &Options,
    message: Bytes,
    prev_total_ms: Option<f64>,
) -> Result<Vec<u8>, UpstreamError> {
    let limits = Limits { bytes: options.max_message_bytes, ..Limits::default() };
    let (observation, dialect) =
        upstream::decode(message, move |bytes| msgpack_numpy::decode(bytes, limits)).await?;
    let answer = upstream::answer(service, observation).await?;
    let mut reply =
        vec![("actions".to_owned(), Value::Array(action_matrix(&answer.chunks, answer.batched)?))];
    reply.extend(action_arrays(&answer.chunks, answer.batched, "action.")?);
    let mut timing = vec![("infer_ms", Value::Float(milliseconds(answer.timings.total)))];
    timing.extend(prev_total_ms.map(|ms| ("prev_total_ms", Value::Float(ms))));
    reply.push(("server_timing".to_owned(), Value::map(timing)));
    let device = Value::Float(milliseconds(answer.timings.device));
    reply.push(("policy_timing".to_owned(), Value::map([("infer_ms", device)])));
    Ok(msgpack_numpy::encode(&Value::Map(reply), dialect))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What a client may want to know before it sends anything.
fn metadata(robot: &Robot) -> Value {
    let names = |names: Vec<&str>| Value::List(names.into_iter().map(Value::text).collect());
    let keys = |keys: &[crate::service::Key]| {
        Value::map(keys.iter().map(|key| (key.key.clone(), Value::Int(key.dim as i128))))
    };
    Value::map([
        ("embodiment", Value::text(robot.data_config.embodiment.name())),
        ("data_config", Value::text(robot.data_config.name.as_str())),
        ("cameras", names(robot.cameras.iter().map(|camera| camera.key.as_str()).collect())),
        ("state_keys", keys(&robot.state)),
        ("action_keys", keys(&robot.actions)),
        ("action_horizon", Value::Int(robot.horizon as i128)),
    ])
}

/// What openpi's server does with an error: a text frame, then the end.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut SplitSink<WebSocketStream<S>, Message>,
    error: &UpstreamError,
) -> Result<(), Ended> {
    tracing::warn!(protocol = "websocket", %error, "request refused");
    send(output, Message::text(error.to_string())).await?;
    close(output, CloseCode::Error, "the request was refused").await
}

async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut SplitSink<WebSocketStream<S>, Message>,
    code: CloseCode,
    reason: &str,
) -> Result<(), Ended> {
    /// A close frame carries 125 bytes, two of them the code.
    const MAX_REASON_BYTES: usize = 123;
    let reason = reason.get(..MAX_REASON_BYTES).unwrap_or(reason);
    send(output, Message::Close(Some(CloseFrame { code, reason: reason.to_owned().into() }))).await
}

async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut SplitSink<WebSocketStream<S>, Message>,
    message: Message,
) -> Result<(), Ended> {
    timeout(SEND_LIMIT, output.send(message)).await.map_err(|_| Ended::Slow("reader", SEND_LIMIT))??;
    Ok(())
}
