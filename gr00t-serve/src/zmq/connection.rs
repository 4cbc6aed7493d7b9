//! One peer: its requests one at a time, each answered once, while its commands are served and its leaving is noticed.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, timeout, timeout_at};

use super::endpoint::{Peer, Reply, respond};
use super::frame::{Decoder, Event, MAX_FRAMES, ZmtpError, write_command, write_frame};
use super::greeting;
use super::server::{Options, Places};
use crate::room::Share;
use crate::service::Service;

/// Longest time for greetings and READY.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Longest time from a message's first byte to its last.
const MESSAGE_LIMIT: Duration = Duration::from_mins(1);
/// Longest time for a peer to take a reply.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// Why a connection ended other than by the peer's leaving.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    Zmtp(#[from] ZmtpError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("no {0} within {secs} s", secs = .1.as_secs())]
    Slow(&'static str, Duration),
    #[error("{0}")]
    NoRoom(String),
}

/// Frames in front of a request's delimiter, delimiter included, which its reply has too.
type Envelope = Vec<Bytes>;
type Work<'a> = Pin<Box<dyn Future<Output = (Envelope, Reply)> + Send + 'a>>;

/// Serves one peer until it leaves or the server stops. Returns whether it asked for the server to stop.
pub(super) async fn serve(
    stream: TcpStream,
    service: &Service,
    options: &Options,
    places: &Places,
) -> Result<bool, Ended> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut input = Input {
        read,
        buffer: BytesMut::new(),
        decoder: Decoder::new(options.max_message_bytes),
        started: None,
        share: places.room.share(),
    };
    let pings = timeout(HANDSHAKE_LIMIT, handshake(&mut input, &mut write))
        .await
        .map_err(|_| Ended::Slow("handshake", HANDSHAKE_LIMIT))??;
    let peer = Peer::default();
    let mut work: Option<Work<'_>> = None;
    let mut waiting: Option<(Event, Share)> = None;
    let mut heard = Instant::now();
    let mut asked = false;
    let mut stopping = false;
    loop {
        if work.is_none() {
            if let Some((event, share)) = waiting.take() {
                work = Some(Box::pin(answer(event, share, service, options, &peer)));
            } else if stopping {
                return Ok(false);
            }
        }
        tokio::select! {
            // a second request waits in the socket, not here
            event = input.next(), if waiting.is_none() => match event? {
                None => return Ok(false),
                Some(Event::Command(command)) => {
                    (heard, asked) = (Instant::now(), false);
                    pong(&command, &mut write).await?;
                }
                Some(event) => {
                    (heard, asked) = (Instant::now(), false);
                    waiting = Some((event, input.share.take()));
                }
            },
            (envelope, reply) = finished(&mut work), if work.is_some() => {
                work = None;
                send(&mut write, &message(&envelope, &reply.body)).await?;
                heard = Instant::now();
                if reply.kill {
                    return Ok(true);
                }
            }
            () = tokio::time::sleep_until(heard + places.quiet), if work.is_none() => {
                if asked || !pings && places.are_taken() {
                    return Err(Ended::Slow("sign of life", places.quiet));
                }
                if !pings {
                    // such a peer cannot be asked; it may stay while nobody needs its place
                    heard = Instant::now();
                    continue;
                }
                let mut ping = Vec::new();
                write_command(&mut ping, b"\x04PING\0\0");
                send(&mut write, &ping).await?;
                (heard, asked) = (Instant::now(), true);
            }
            () = service.stopping(), if !stopping => stopping = true,
        }
    }
}

/// The work's result; never, if there is none.
async fn finished(work: &mut Option<Work<'_>>) -> (Envelope, Reply) {
    match work {
        Some(work) => work.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn handshake(input: &mut Input, write: &mut OwnedWriteHalf) -> Result<bool, Ended> {
    write.write_all(&greeting::ours()).await?;
    let mut theirs = [0; greeting::GREETING_BYTES];
    input.read.read_exact(&mut theirs).await?;
    let pings = greeting::check(&theirs)?;
    write.write_all(&greeting::ready()).await?;
    let checked = match input.next().await? {
        Some(Event::Command(command)) => greeting::check_ready(&command),
        _ => Err(ZmtpError("the peer sent a message before READY".into())),
    };
    if let Err(error) = checked {
        write.write_all(&greeting::error("this socket is a REP")).await?;
        return Err(error.into());
    }
    Ok(pings)
}

/// Answers PING with the context that it carries; other commands need no answer.
async fn pong(command: &[u8], write: &mut OwnedWriteHalf) -> Result<(), Ended> {
    const TTL_BYTES: usize = 2;
    let Some(context) = command.strip_prefix(b"\x04PING").and_then(|rest| rest.get(TTL_BYTES..)) else {
        return Ok(());
    };
    let mut body = b"\x04PONG".to_vec();
    body.extend_from_slice(context);
    let mut out = Vec::new();
    write_command(&mut out, &body);
    send(write, &out).await
}

async fn send(write: &mut OwnedWriteHalf, bytes: &[u8]) -> Result<(), Ended> {
    timeout(SEND_LIMIT, write.write_all(bytes))
        .await
        .map_err(|_| Ended::Slow("reader of the reply", SEND_LIMIT))??;
    Ok(())
}

/// Answers one message.
async fn answer(
    event: Event,
    _share: Share,
    service: &Service,
    options: &Options,
    peer: &Peer,
) -> (Envelope, Reply) {
    match event {
        Event::Message(mut frames) => {
            let delimiter = frames.iter().position(Bytes::is_empty).map_or(0, |at| at + 1);
            let mut body = frames.split_off(delimiter);
            let reply = match (body.pop(), body.len()) {
                (Some(one), 0) => respond(service, options, peer, one).await,
                (last, more) => {
                    let got = more + usize::from(last.is_some());
                    Reply::error(format!("message has {got} frames after the envelope, wanted 1"))
                }
            };
            (frames, reply)
        }
        Event::TooLarge(frames, got) => {
            let most = options.max_message_bytes;
            let reply = Reply::error(format!("message of {got} bytes or more, at most {most} are taken"));
            (delimiter(frames), reply)
        }
        Event::TooManyFrames(frames) => {
            (delimiter(frames), Reply::error(format!("message of more than {MAX_FRAMES} frames")))
        }
        // commands are served where they are read
        Event::Command(_) => (Vec::new(), Reply::error("a command is no request")),
    }
}

/// The stock envelope, if the message has it.
fn delimiter(frames: Vec<Bytes>) -> Envelope {
    frames.into_iter().take_while(Bytes::is_empty).take(1).collect()
}

/// The reply's frames.
fn message(envelope: &[Bytes], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64);
    for frame in envelope {
        write_frame(&mut out, frame, true);
    }
    write_frame(&mut out, body, false);
    out
}

/// The reading half. Dropping [`next`](Self::next) loses nothing: all it knows is kept here.
struct Input {
    read: OwnedReadHalf,
    buffer: BytesMut,
    decoder: Decoder,
    /// When the message that is on its way began.
    started: Option<Instant>,
    /// What that message takes up.
    share: Share,
}

impl Input {
    /// The next event; `None` once the peer has left between two messages.
    async fn next(&mut self) -> Result<Option<Event>, Ended> {
        loop {
            if let Some(event) = self.decoder.next(&mut self.buffer)? {
                self.started = None;
                return Ok(Some(event));
            }
            if self.decoder.is_idle(&self.buffer) {
                self.started = None;
            } else {
                self.started.get_or_insert_with(Instant::now);
            }
            let read = self.read.read_buf(&mut self.buffer);
            let count = match self.started {
                None => read.await?,
                Some(started) => timeout_at(started + MESSAGE_LIMIT, read)
                    .await
                    .map_err(|_| Ended::Slow("end of the message", MESSAGE_LIMIT))??,
            };
            if count == 0 {
                return Ok(None);
            }
            if !self.share.set(self.decoder.bytes_kept(&self.buffer)) {
                return Err(Ended::NoRoom(self.share.refusal()));
            }
        }
    }
}
