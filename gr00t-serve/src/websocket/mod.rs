//! openpi's WebSocket: on connection a frame of metadata, then an observation in, actions out, as msgpack-numpy. Source:
//! `openpi/serving/websocket_policy_server.py` and `openpi_client/websocket_client_policy.py`.

mod connection;
mod counted;
mod head;
mod server;

pub use server::{Options, serve};
