//! The servers beside HTTP, each only if it is asked for. Their ports are taken at boot, so that a port in use is known at
//! once, but refuse connections until the service is ready, as upstream's servers do while they load: clients wait for that.

use std::io;
use std::net::{IpAddr, SocketAddr};

use clap::{ArgAction, Args};
use serde::Serialize;
use tokio::net::{TcpListener, TcpSocket};
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
            let listener = listen(socket)?;
            tracing::info!("ZeroMQ on tcp://{}", listener.local_addr()?);
            servers.spawn(zmq::serve(listener, service.clone(), options));
        }
        if let Some((socket, options)) = self.websocket {
            let listener = listen(socket)?;
            tracing::info!("WebSocket on ws://{}", listener.local_addr()?);
            servers.spawn(websocket::serve(listener, service.clone(), options));
        }
        Ok(servers)
    }
}

/// Takes the port for this server alone, though it does not listen yet.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let taken = |reuse: bool| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(reuse)?;
        socket.bind(address)?;
        Ok(socket)
    };
    // Sockets that may share an address take it beside each other until one listens, so one that may not comes first. It also
    // gives way to the connections that a server leaves behind when it is stopped; they may share, and so then may we.
    taken(false).or_else(|_| taken(true)).map_err(|error: io::Error| at(address, &error))
}

fn listen(socket: TcpSocket) -> io::Result<TcpListener> {
    let address = socket.local_addr()?;
    // so that its connections do not keep the port from the next server
    socket.set_reuseaddr(true)?;
    socket.listen(BACKLOG).map_err(|error| at(address, &error))
}

fn at(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("listen on {address}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::net::Ipv4Addr;

    use super::*;

    fn access() -> Access {
        Access {
            host: Ipv4Addr::LOCALHOST.into(),
            token: None,
            max_message_bytes: 1 << 20,
            max_connections: 1,
            origins: Origins::default(),
        }
    }

    #[tokio::test]
    async fn a_port_is_taken_once_though_nobody_listens() {
        let ports =
            |zmq, websocket| ProtocolOptions { zmq_port: zmq, websocket_port: websocket, allow_kill: false };
        let first = Protocols::bind(&ports(Some(0), None), &access()).unwrap();
        let address = first.addresses().unwrap().0.unwrap();
        let port = Some(address.port());
        for clash in [ports(port, None), ports(None, port)] {
            let error = Protocols::bind(&clash, &access()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            assert!(error.to_string().starts_with(&format!("listen on {address}: ")), "{error}");
        }
        drop(first);
        Protocols::bind(&ports(None, port), &access()).unwrap();
    }

    #[tokio::test]
    async fn connections_of_a_server_that_ended_do_not_keep_its_port() {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let listener = listen(bind(address).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let client = tokio::net::TcpStream::connect(address).await.unwrap();
        // the side that closes first is the one whose port waits
        drop(listener.accept().await.unwrap());
        drop(listener);
        drop(client);
        listen(bind(address).unwrap()).unwrap();
    }
}
