//! The listening socket and its peers.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection;
use crate::auth::Token;
use crate::codec::Limits;
use crate::farewell::farewell;
use crate::room::Room;
use crate::service::Service;

/// Pause after the system refused a connection, as it does when it is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Long for a working client, short for a dead one's place.
const QUIET: Duration = Duration::from_mins(1);

/// Options of the ZeroMQ server.
#[derive(Debug, Clone)]
pub struct Options {
    /// What clients must show as `api_token`.
    pub token: Option<Token>,
    /// Whether the endpoint `kill` stops the server.
    pub allow_kill: bool,
    /// Longest message that is taken.
    pub max_message_bytes: usize,
    /// Most peers at a time; further ones are turned away.
    pub max_connections: usize,
}

impl Default for Options {
    /// No token, no `kill`, 64 MiB, 64 peers.
    fn default() -> Self {
        Self { token: None, allow_kill: false, max_message_bytes: Limits::DEFAULT_BYTES, max_connections: 64 }
    }
}

/// What peers share.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Room for messages.
    pub(super) room: Room,
    /// Silence after which a peer is asked whether it is there, and after which it is given up.
    pub(super) quiet: Duration,
}

impl Places {
    /// Whether the next peer would be turned away.
    pub(super) fn are_taken(&self) -> bool {
        self.free.available_permits() == 0
    }
}

/// Serves peers of `listener` until the service stops, by its owner or by a `kill`; then finishes what runs.
pub async fn serve(listener: TcpListener, service: Service, options: Options) {
    let options = Arc::new(options);
    let places = Arc::new(Places {
        free: Arc::new(Semaphore::new(options.max_connections)),
        room: Room::of(options.max_message_bytes),
        quiet: QUIET,
    });
    let mut peers = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = service.stopping() => break,
            Some(_) = peers.join_next(), if !peers.is_empty() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(protocol = "zmq", %error, "no connection could be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places.free).try_acquire_owned() else {
            tracing::warn!(protocol = "zmq", %peer, most = options.max_connections, "too many peers, turned away");
            continue;
        };
        let (service, options, places) = (service.clone(), Arc::clone(&options), Arc::clone(&places));
        peers.spawn(async move {
            let _place = place;
            match connection::serve(stream, &service, &options, &places).await {
                Ok(false) => {}
                Ok(true) => service.stop(),
                Err(error) => tracing::info!(protocol = "zmq", %peer, %error, "connection ended"),
            }
        });
    }
    drop(listener);
    farewell(&service, peers).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::metrics::Metrics;

    /// A peer of version 3.0, which has no PING, and how the server's side of it ends.
    async fn silent(free: usize) -> (TcpStream, tokio::task::JoinHandle<Result<bool, String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let serving = tokio::spawn(async move {
            let service = Service::new(crate::service::Limits::default(), Arc::new(Metrics::new().unwrap()));
            let options = Options::default();
            let places = Places {
                free: Arc::new(Semaphore::new(free)),
                room: Room::of(options.max_message_bytes),
                quiet: Duration::from_millis(20),
            };
            connection::serve(stream, &service, &options, &places).await.map_err(|error| error.to_string())
        });
        let mut greeting = [0; 64];
        greeting[0] = 0xff;
        greeting[8..16].copy_from_slice(b"\x01\x7f\x03\0NULL");
        peer.write_all(&greeting).await.unwrap();
        peer.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ").await.unwrap();
        peer.read_exact(&mut [0; 64 + 27]).await.unwrap();
        (peer, serving)
    }

    #[tokio::test]
    async fn a_silent_peer_of_3_0_stays_until_its_place_is_needed() {
        let (_peer, serving) = silent(0).await;
        assert!(serving.await.unwrap().is_err_and(|error| error.contains("sign of life")));

        let (mut peer, _serving) = silent(1).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        peer.write_all(b"\x01\0\0\x0f\x81\xa8endpoint\xa4ping").await.unwrap();
        let mut reply = [0; 5];
        peer.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..3], [1, 0, 0]);
    }
}
