//! The servers beside HTTP, each only if it is asked for. Their ports are taken at boot, so that a port in use is known at
//! once, but refuse connections until the service is ready, as upstream's servers do while they load: clients wait for that.

use std::io;
use std::net::{IpAddr, SocketAddr};

use clap::{ArgAction, Args};
use serde::Serialize;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::auth::Token;
use crate::options::{LISTENING, boolean};
use crate::origin::Origins;
use crate::service::Service;
use crate::{websocket, zmq};

/// Connections that may wait to be taken.
const BACKLOG: u32 = 128;

/// Which servers there are.
#[derive(Debug, Clone, Default, Args, Serialize)]
pub struct ProtocolOptions {
    /// Port of NVIDIA's ZeroMQ protocol, whose clients look for 5555; not served unless given
    #[arg(long, value_name = "PORT", help_heading = LISTENING)]
    pub zmq_port: Option<u16>,
    /// Port of openpi's WebSocket protocol, whose clients look for 8000; not served unless given
    #[arg(long, value_name = "PORT", help_heading = LISTENING)]
    pub websocket_port: Option<u16>,
    /// Let ZeroMQ clients stop the server with the endpoint `kill`
    #[arg(long, value_name = "BOOL", help_heading = LISTENING, hide_default_value = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = boolean)]
    pub allow_kill: bool,
}

/// What all protocols have in common.
#[derive(Debug, Clone)]
pub struct Access {
    /// Address to listen on.
    pub host: IpAddr,
    /// What clients must show.
    pub token: Option<Token>,
    /// Longest message that is taken.
    pub max_message_bytes: usize,
    /// Most connections of each protocol.
    pub max_connections: usize,
    /// Web pages that may use WebSocket; no browser speaks ZeroMQ.
    pub origins: Origins,
}

/// Servers whose ports are taken.
#[derive(Debug)]
pub struct Protocols {
    zmq: Option<(TcpSocket, zmq::Options)>,
    websocket: Option<(TcpSocket, websocket::Options)>,
}

impl Protocols {
    /// Takes the ports; connections are refused.
    ///
    /// # Errors
    /// The address and the system's reason, such as a port in use.
    pub fn bind(options: &ProtocolOptions, access: &Access) -> io::Result<Self> {
        let bound = |port: u16| bind(SocketAddr::new(access.host, port));
        let zmq = options.zmq_port.map(bound).transpose()?.map(|socket| {
            let options = zmq::Options {
                token: access.token.clone(),
                allow_kill: options.allow_kill,
                max_message_bytes: access.max_message_bytes,
                max_connections: access.max_connections,
            };
            (socket, options)
        });
        let websocket = options.websocket_port.map(bound).transpose()?.map(|socket| {
            let options = websocket::Options {
                token: access.token.clone(),
                max_message_bytes: access.max_message_bytes,
                max_connections: access.max_connections,
                origins: access.origins.clone(),
            };
            (socket, options)
        });
        Ok(Self { zmq, websocket })
    }

    /// Where ZeroMQ and WebSocket are, or will be, served.
    ///
    /// # Errors
    /// The system's reason.
    pub fn addresses(&self) -> io::Result<(Option<SocketAddr>, Option<SocketAddr>)> {
        let zmq = self.zmq.as_ref().map(|(socket, _)| socket.local_addr()).transpose()?;
        let websocket = self.websocket.as_ref().map(|(socket, _)| socket.local_addr()).transpose()?;
        Ok((zmq, websocket))
    }

    /// Takes connections until `service` stops. The tasks end when what runs then is finished.
    ///
    /// # Errors
    /// The system's reason, if it lets no one listen.
    pub fn start(self, service: &Service) -> io::Result<JoinSet<()>> {
        let mut servers = JoinSet::new();
        if let Some((socket, options)) = self.zmq {
            let listener = socket.listen(BACKLOG)?;
            tracing::info!("ZeroMQ on tcp://{}", listener.local_addr()?);
            servers.spawn(zmq::serve(listener, service.clone(), options));
        }
        if let Some((socket, options)) = self.websocket {
            let listener = socket.listen(BACKLOG)?;
            tracing::info!("WebSocket on ws://{}", listener.local_addr()?);
            servers.spawn(websocket::serve(listener, service.clone(), options));
        }
        Ok(servers)
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // a server that was just stopped leaves connections behind that would keep the port
    socket.set_reuseaddr(true)?;
    socket
        .bind(address)
        .map_err(|error| io::Error::new(error.kind(), format!("listen on {address}: {error}")))?;
    Ok(socket)
}
