//! How a port's clients are left when the server stops.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::service::Service;

/// Time to take an answer, once nothing runs any more.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Longest wait for what runs.
const RUNNING: Duration = Duration::from_secs(30);

/// Waits until `clients` have ended, but not longer than their requests run and their answers take: those that send half a request
/// or take nothing are cut off.
pub(crate) async fn farewell(service: &Service, mut clients: JoinSet<()>) {
    let ended = async { while clients.join_next().await.is_some() {} };
    let patience = async {
        service.idle(RUNNING).await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        () = ended => return,
        () = patience => {}
    }
    tracing::debug!("{} connections without a request are cut off", clients.len());
    clients.shutdown().await;
}
