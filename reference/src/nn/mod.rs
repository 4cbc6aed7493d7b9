//! The few layers that everything is made of.

mod activation;
mod attention;
mod linear;
mod norm;

pub(crate) use activation::{gelu_tanh, relu, silu};
pub(crate) use attention::{Heads, Mask, attention};
pub(crate) use linear::{Linear, matmul};
pub(crate) use norm::{LayerNorm, RmsNorm};
