//! Connections: HTTP/1.1 with limits on their number, on heads and on idleness; ended gracefully when the server stops.

use std::io;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::App;
use super::patient::Patient;
use crate::farewell::farewell;

/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// Bytes of a connection's buffer, and so of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Wait after a failed accept, such as one for want of file descriptors.
const ACCEPT_RETRY: std::time::Duration = std::time::Duration::from_millis(100);

/// Serves connections until the service stops. Those open then finish the request that they are at: it returns when the last
/// answer is written, or its client has been given a little time to take it.
pub async fn accept(app: App, listener: TcpListener) {
    let clients = accept_until_stopped(&app, listener).await;
    farewell(app.service(), clients).await;
}

/// Takes the listener, so that no new connection waits for an answer that would not come.
async fn accept_until_stopped(app: &App, listener: TcpListener) -> JoinSet<()> {
    let slots = Arc::new(Semaphore::new(app.0.limits.connections));
    let mut clients = JoinSet::new();
    loop {
        let next = async {
            // a client beyond the limit waits in the listener's backlog
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?.0, slot))
        };
        tokio::select! {
            () = app.service().stopping() => return clients,
            Some(_) = clients.join_next(), if !clients.is_empty() => {}
            accepted = next => match accepted {
                Ok((stream, slot)) => { clients.spawn(connection(app.clone(), stream, slot)); }
                Err(error) => {
                    warn!("accept: {error}");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
}

async fn connection(app: App, stream: TcpStream, _slot: OwnedSemaphorePermit) {
    // answers are small and waited for
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream, app.0.limits.write);
    let service = TowerToHyperService::new(app.router());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.0.limits.head)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.service().stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!("connection: {error}");
    }
}
