//! The listening socket and its clients.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection;
use crate::auth::Token;
use crate::codec::Limits;
use crate::farewell::farewell;
use crate::origin::Origins;
use crate::room::Room;
use crate::service::Service;

/// Pause after the system refused a connection, as it does when it is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Options of the WebSocket server.
#[derive(Debug, Clone)]
pub struct Options {
    /// What clients must show in `Authorization`, as `Api-Key` or `Bearer`.
    pub token: Option<Token>,
    /// Longest message that is taken.
    pub max_message_bytes: usize,
    /// Most clients at a time; further ones are turned away.
    pub max_connections: usize,
    /// Web pages that may use the server.
    pub origins: Origins,
}

impl Default for Options {
    /// No token, 64 MiB, 64 clients.
    fn default() -> Self {
        Self {
            token: None,
            max_message_bytes: Limits::DEFAULT_BYTES,
            max_connections: 64,
            origins: Origins::default(),
        }
    }
}

/// Serves clients of `listener` until the service stops; then finishes what runs.
pub async fn serve(listener: TcpListener, service: Service, options: Options) {
    let options = Arc::new(options);
    let places = Arc::new(Semaphore::new(options.max_connections));
    let room = Room::of(options.max_message_bytes);
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = service.stopping() => break,
            Some(_) = clients.join_next(), if !clients.is_empty() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(protocol = "websocket", %error, "no connection could be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(protocol = "websocket", %peer, most = options.max_connections, "too many clients, turned away");
            continue;
        };
        let (service, options, share) = (service.clone(), Arc::clone(&options), room.share());
        clients.spawn(async move {
            let _place = place;
            if let Err(error) = connection::serve(stream, &service, &options, share).await {
                tracing::info!(protocol = "websocket", %peer, %error, "connection ended");
            }
        });
    }
    drop(listener);
    farewell(&service, clients).await;
}
