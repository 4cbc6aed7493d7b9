//! An independent fp32 reference of GR00T N1.5 on `ndarray`.
//!
//! Plain code in upstream's order and names: [`Reference::predict`] runs vision tower, LLM, adapter and
//! the flow-matching action head, and shows every intermediate tensor to an [`Observer`]. Weights are read layer by
//! layer from a `gr00t_host::Weights` and dropped after use; only the DiT, which every denoising step needs, stays.
//!
//! Arithmetic is f32; the statistics of norms and the sums of softmax are f64. Results do not depend on the number
//! of threads: work is split over output columns and heads, never over a sum.

#![forbid(unsafe_code)]

mod adapter;
mod block;
mod dit;
mod error;
mod flow;
mod llm;
mod model;
mod nn;
mod observer;
mod state_action;
mod vision;

pub use error::{Error, Result};
pub use model::Reference;
/// The arrays that stages and actions come in.
#[doc(no_inline)]
pub use ndarray;
pub use observer::{Observer, Part};
