//! The server's life: everything checked, device opened, model loaded and warmed up, requests served, everything let go.

mod boot;
mod facts;
mod golden;
mod log;
mod plan;
mod progress;
mod signals;
mod warm_up;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use gr00t_model::tt_ops::Metal;
use gr00t_model::tt_ops::metal::MetalOptions;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::info;

use crate::about::About;
use crate::http::{App, HttpLimits, accept};
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use crate::protocols::{Access, Protocols};
use crate::service::{Limits, Service};
use gr00t_host::noise::Noise;

pub use boot::{Booted, boot};
pub use log::{init as init_log, lines as log_lines};
pub use plan::Plan;
pub use progress::Progress;

/// Longest wait for requests that are being answered when the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// What is served, for tests and for programs that run a server of their own.
#[derive(Debug)]
pub struct Server {
    /// The routes.
    pub app: App,
    /// The service behind them.
    pub service: Service,
    /// Where HTTP listens.
    pub address: SocketAddr,
    listener: TcpListener,
}

impl Server {
    /// Takes the port; nothing is answered yet.
    ///
    /// # Errors
    /// `Address already in use` and its kin.
    pub async fn bind(options: &ServeOptions) -> Result<Self> {
        let wanted = SocketAddr::new(options.host, options.port);
        let listener = TcpListener::bind(wanted).await.with_context(|| format!("listen on {wanted}"))?;
        Self::on(options, listener)
    }

    /// [`bind`](Self::bind) to a port that is taken already, in place of the options'.
    fn on(options: &ServeOptions, listener: TcpListener) -> Result<Self> {
        let limits = Limits {
            queue: usize::from(options.queue),
            deadline: Duration::from_millis(options.deadline_ms),
            noise: Noise::Seed(options.seed),
        };
        let service = Service::new(limits, Arc::new(Metrics::new()?));
        let http = HttpLimits {
            body: usize::from(options.max_body_mib) << 20,
            connections: usize::from(options.max_connections),
            origins: options.allow_origin.iter().cloned().collect(),
            ..HttpLimits::default()
        };
        let app = App::new(service.clone(), options.api_token.clone(), http);
        let address = listener.local_addr()?;
        Ok(Self { app, service, address, listener })
    }

    /// Answers connections until the service stops.
    pub fn start(self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(accept(self.app, self.listener))
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever keeps the server from becoming ready; nothing is served half.
pub async fn run(options: ServeOptions) -> Result<()> {
    live(options, None).await
}

/// [`run`] on a port that is taken already, in place of the options': nobody can have come in between.
///
/// # Errors
/// As [`run`].
pub async fn run_on(options: ServeOptions, listener: std::net::TcpListener) -> Result<()> {
    listener.set_nonblocking(true)?;
    live(options, Some(TcpListener::from_std(listener)?)).await
}

async fn live(options: ServeOptions, listener: Option<TcpListener>) -> Result<()> {
    let mut signals = signals::Signals::new()?;
    info!("Started server process [{}]", std::process::id());
    info!("Waiting for application startup.");
    for note in &options.notes {
        info!("{note}");
    }
    let server = match listener {
        Some(listener) => Server::on(&options, listener)?,
        None => Server::bind(&options).await?,
    };
    let (service, app, address) = (server.service.clone(), server.app.clone(), server.address);
    info!("HTTP on http://{address}");
    let protocols = Protocols::bind(
        &options.protocols,
        &Access {
            host: options.host,
            token: options.api_token.clone(),
            max_message_bytes: usize::from(options.max_body_mib) << 20,
            max_connections: usize::from(options.max_connections),
            origins: app.limits().origins.clone(),
        },
    )?;
    let accepting = server.start();

    let progress = Progress::new(Some(service.clone()));
    let beat = progress.beat();
    let its_progress = progress.clone();
    let planning = tokio::task::spawn_blocking(move || {
        Plan::new(&options, &|file, done, total| its_progress.download(file, done, total))
    });
    let plan = tokio::select! {
        plan = planning => Arc::new(plan??),
        () = signals.stop() => {
            info!("Shutting down: told to stop before a device was opened");
            return Ok(());
        }
    };

    let its_progress = progress.clone();
    let its_service = service.clone();
    let cancel = progress.cancel().clone();
    let card = Arc::new(OnceLock::<Metal>::new());
    let its_card = Arc::clone(&card);
    let mut booting =
        tokio::task::spawn_blocking(move || open_and_boot(&plan, &its_card, &its_service, &its_progress));
    let booted = tokio::select! {
        booted = &mut booting => Some(booted?),
        () = signals.stop() => {
            info!("Told to stop while starting");
            cancel.cancel();
            // what runs on a card cannot be interrupted, and the process must not end under it
            let its_card = Arc::clone(&card);
            tokio::task::spawn_blocking(move || its_card.get().map(Metal::close)).await?;
            // the device is closed when the boot has let go of it
            if tokio::time::timeout(GRACE, booting).await.is_err() {
                tracing::warn!("the boot was still running after {} s", GRACE.as_secs());
            }
            None
        }
    };
    drop(beat);
    drop(card);
    let mut others = JoinSet::new();
    match booted {
        Some(Ok(about)) => {
            app.set_about(about);
            service.open();
            others = protocols.start(&service)?;
            info!("Application startup complete.");
            tokio::select! {
                () = signals.stop() => {}
                () = service.stopping() => {}
            }
        }
        Some(Err(error)) => return Err(error),
        None => {}
    }
    info!("Shutting down");
    service.stop();
    if !service.idle(GRACE).await {
        tracing::warn!("requests were still running after {} s", GRACE.as_secs());
    }
    accepting.await?;
    let ended = async { while others.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("protocols beside HTTP were still running after {} s", GRACE.as_secs());
    }
    info!("Releasing traces and device tensors");
    service.release();
    // the device goes with the last tensor on it
    info!("Closing device");
    Ok(())
}

/// Opens the device that the plan asks for and boots on it. A card is left in `card`, from where it can be closed meanwhile.
fn open_and_boot(
    plan: &Arc<Plan>,
    card: &OnceLock<Metal>,
    service: &Service,
    progress: &Progress,
) -> Result<About> {
    let options = &plan.options;
    boot::opening(progress, options);
    let booted = if options.device == "metal" {
        let mut metal = MetalOptions::default();
        metal.device_id = options.device_id;
        metal.trace_region_size = options.trace_region_size;
        metal.l1_small_size = options.l1_small_size;
        let opened = Metal::open(&metal)?;
        boot(plan, card.get_or_init(|| opened), service, progress)
    } else {
        boot(plan, &plan.open_soft()?, service, progress)
    };
    booted.map(Booted::about)
}
