//! Host values are of the tensor's kind.

use tt_ops::{Result, Soft, Tensor, Uint32};

fn ids(device: &Soft) -> Result<Tensor<Soft, Uint32>> {
    Tensor::from_span(device, [2], &[1.0f32, 2.0])
}

fn main() {}
