//! The ZeroMQ and WebSocket servers on sockets: stock dialogues, equal actions, garbage, peers that stall or vanish.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod configs;
mod peer;
mod python;
mod rig;
mod websocket;
mod zmq;
