//! Bytes ↔ observations and actions, for the protocols that GR00T clients speak. Pure functions, no sockets.
//!
//! ```text
//! npy ──┬─ msg_serializer (NVIDIA's ZeroMQ)        ┐
//!       │  msgpack_numpy  (openpi's WebSocket)      ├─ Value ─ observation ─► gr00t_host::Observation
//!       └─ json_numpy     (NVIDIA's HTTP, /act)     ┘        ◄─ actions ───── gr00t_host::ActionChunk
//! ```
//!
//! Everything that is read is a stranger's: it is checked against [`Limits`] before memory is given to it, and nothing is
//! ever unpickled.

mod act;
mod actions;
mod array;
mod dtype;
mod error;
mod field;
pub mod json_numpy;
mod limits;
pub mod msg_serializer;
mod msgpack;
pub mod msgpack_numpy;
pub mod npy;
mod observation;
mod value;

pub use act::{ActBody, decode_act};
pub use actions::{action_arrays, action_matrix};
pub use array::{Array, Elements};
pub use dtype::Dtype;
pub use error::{CodecError, Result};
pub use limits::Limits;
pub use observation::{Batch, MAX_BATCH, RobotKeys, SEED_KEY, observations};
pub use value::Value;
