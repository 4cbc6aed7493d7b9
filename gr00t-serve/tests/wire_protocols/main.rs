//! The ZeroMQ and WebSocket servers on sockets: stock dialogues, equal actions, garbage, peers that stall or vanish.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod configs;
mod peer;
mod python;
mod rig;
#[path = "../rig/venv.rs"]
mod venv;
mod websocket;
mod zmq;
