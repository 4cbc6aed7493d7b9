//! NVIDIA's ZeroMQ server (`RobotInferenceServer` of N1.5, `PolicyServer` of N1.6 and later, on the same socket): a REP socket
//! that answers every request exactly once, garbage too, and on which no peer waits for another.
//!
//! The `zeromq` crate's REP socket is one lock-step queue for all peers and takes frames of any declared size, so the part of
//! ZMTP 3.1 that a REP socket needs is here: NULL security, REQ and DEALER peers. Source: ZeroMQ RFC 23 and 37.

mod connection;
mod endpoint;
mod frame;
mod greeting;
mod server;

pub use frame::{Decoder, Event, ZmtpError};
pub use server::{Options, serve};
