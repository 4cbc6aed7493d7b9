//! Matrix products: `linear` on a packed weight with a fused epilogue, `matmul` of two activations.
//!
//! Accumulation is fp32. An output element is the sum of partial sums over runs of K, each in ascending k: the same for
//! every thread count and number of rows.

#[cfg(target_arch = "x86_64")]
mod amx;
mod batched;
mod driver;
mod epilogue;
mod grid;

pub use batched::matmul;
pub use epilogue::{Epilogue, Residual};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::pack::PackedWeight;
use crate::view::{Dtype, View, ViewMut};

/// `out = activation(x w + bias) + residual`, rounded once when it is stored.
///
/// x is [B0, B1, M, K] and out [B0, B1, M, N] in float32 or bfloat16, out with contiguous rows. With a weight that is not
/// float32, x is rounded to bfloat16 first, as on the card; with a float32 weight it is not.
///
/// # Errors
/// If shapes, dtypes or out's layout do not fit.
pub fn linear(
    engine: &Engine,
    x: &View<'_>,
    weight: &PackedWeight,
    epilogue: &Epilogue<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    const OP: &str = "linear";
    let s = x.shape();
    if s[3] != weight.k() {
        let wanted = vec![s[0], s[1], s[2], weight.k()];
        return Err(Error::Shape { op: OP, what: "x", got: s.into(), wanted });
    }
    let wanted = [s[0], s[1], s[2], weight.n()];
    if out.shape() != wanted {
        return Err(Error::Shape { op: OP, what: "out", got: out.shape().into(), wanted: wanted.into() });
    }
    check_float(OP, "x", x.dtype())?;
    check_float(OP, "out", out.dtype())?;
    check_dense(OP, out)?;
    epilogue.check(OP, wanted)?;
    if out.is_empty() {
        return Ok(());
    }
    #[cfg(target_arch = "x86_64")]
    if engine.kernels().isa == crate::Isa::Amx && weight.format() != crate::pack::WeightFormat::F32 {
        return amx::run(engine, &x.raw(), weight, &epilogue.raw(), out.raw());
    }
    driver::run(engine, &x.raw(), weight, &epilogue.raw(), out.raw())
}

pub(crate) fn check_float(op: &'static str, what: &'static str, got: Dtype) -> Result<()> {
    match got {
        Dtype::F32 | Dtype::Bf16 => Ok(()),
        _ => Err(Error::Dtype { op, what, got, wanted: "float32 or bfloat16" }),
    }
}

fn check_dense(op: &'static str, out: &ViewMut<'_>) -> Result<()> {
    if out.shape()[3] <= 1 || out.strides()[3] == 1 {
        return Ok(());
    }
    Err(Error::Layout { op, what: "out", got: out.strides(), wanted: "contiguous rows" })
}

#[cfg(test)]
mod tests;
