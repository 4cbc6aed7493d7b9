//! The policy server: one robot's observations in, action chunks out, over the protocols that GR00T clients already speak.
//!
//! [`service::Service`] is what every protocol calls: it prepares a request on the host, queues it for the device, and answers
//! with actions or a [`service::ServiceError`]. Protocols only translate bytes.
//!
//! This library is there for the program of the same name, its tests and fuzzers, and changes with them. What embeds the
//! model uses `gr00t-model`.

#![forbid(unsafe_code)]

pub mod about;
pub mod auth;
pub mod codec;
pub mod demo;
mod farewell;
pub mod http;
pub mod life;
pub mod metrics;
pub mod options;
pub mod origin;
pub mod protocols;
mod request_id;
mod room;
pub mod service;
mod text;
pub mod tools;
mod upstream;
pub mod websocket;
pub mod zmq;
