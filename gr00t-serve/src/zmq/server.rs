//! The listening socket and its peers.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection;
use crate::auth::Token;
use crate::codec::Limits;
use crate::service::Service;

/// Pause after the system refused a connection, as it does when it is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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

/// Serves peers of `listener` until the service stops, by its owner or by a `kill`; then finishes what runs.
pub async fn serve(listener: TcpListener, service: Service, options: Options) {
    let options = Arc::new(options);
    let places = Arc::new(Semaphore::new(options.max_connections));
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
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(protocol = "zmq", %peer, most = options.max_connections, "too many peers, turned away");
            continue;
        };
        let (service, options) = (service.clone(), Arc::clone(&options));
        peers.spawn(async move {
            let _place = place;
            match connection::serve(stream, &service, &options).await {
                Ok(false) => {}
                Ok(true) => service.stop(),
                Err(error) => tracing::info!(protocol = "zmq", %peer, %error, "connection ended"),
            }
        });
    }
    drop(listener);
    while peers.join_next().await.is_some() {}
}
