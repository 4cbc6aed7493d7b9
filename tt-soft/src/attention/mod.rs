//! Scaled dot-product attention, in fp32 from bf16 or f32 inputs.
//!
//! A job is 32 queries of one head. Scores are computed transposed, [key][32 queries]: keys are the rows of the matmul
//! tile and queries its columns, so that softmax runs down the columns of whole vectors and the result is, as it stands,
//! the left operand of the product with V. They are divided by their sum at the end. K and V of a head are laid out once per
//! member and head. Scratch per member: about (E + Ev + 32) floats per key, which fits L2 up to a thousand keys or so, so that
//! keys are not taken in blocks with running maxima.
//!
//! Where the CPU's bf16 dot product is the faster way, scores of bf16 inputs are computed with it and lose nothing by it.
//! Probabilities stay fp32. AMX has a form of its own (`attention/amx.rs`), as precise.

#[cfg(target_arch = "x86_64")]
mod amx;
mod blocked;
mod job;

use crate::engine::{Engine, Need};
use crate::error::{Error, Result};
use crate::kernels::PANEL;
use crate::matmul::check_float;
use crate::view::{Dtype, View, ViewMut};
use blocked::{Blocked, Sizes};
use job::{Attention, Mask};

/// Options of [`sdpa`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SdpaConfig<'a> {
    /// Factor of the scores, 1 / sqrt(E) if absent (E being the logical head dimension).
    pub scale: Option<f32>,
    /// Query i sees keys 0..=i. Needs as many keys as queries.
    pub causal: bool,
    /// Added to the scores: [1 or B, 1 or H, 1 or S, T], float32 or bfloat16.
    pub mask: Option<View<'a>>,
    /// Keys of each batch entry that count; the rest are not read.
    pub kv_valid: Option<&'a [usize]>,
}

/// `out = softmax(q k^T scale + mask) v`.
///
/// q is [B, H, S, E], k [B, G, T, E], v [B, G, T, Ev], out [B, H, S, Ev]; H is a multiple of G and query head h uses
/// key head h G / H. float32 or bfloat16, any strides. Accumulation, scores and probabilities are fp32. A query whose
/// keys are all masked (by `-inf` or by `kv_valid`) gives zeros.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn sdpa(
    engine: &Engine,
    q: &View<'_>,
    k: &View<'_>,
    v: &View<'_>,
    config: &SdpaConfig<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    check(q, k, v, config, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let ([batch, heads, queries, width], [_, _, keys, _]) = (q.shape(), k.shape());
    let (value_width, kernels) = (v.shape()[3], engine.kernels());
    let mask = match &config.mask {
        Some(mask) => {
            let wanted = [batch, heads, queries, keys];
            let shared = mask.shape()[2] == 1 || mask.strides()[2] == 0;
            let error =
                || Error::Shape { op: OP, what: "mask", got: mask.shape().into(), wanted: wanted.into() };
            Some(Mask { view: mask.broadcast(wanted).map_err(|_| error())?.raw(), shared })
        }
        None => None,
    };
    let attention = Attention {
        kernels,
        q: q.raw(),
        k: k.raw(),
        v: v.raw(),
        out: out.raw(),
        mask,
        scale: config.scale.unwrap_or(1.0 / (width as f32).sqrt()),
        causal: config.causal,
        kv_valid: config.kv_valid,
        blocks: queries.div_ceil(PANEL),
    };
    let jobs = batch * heads * attention.blocks;
    let work = (batch * heads * queries).saturating_mul(keys * (width + value_width) / PANEL + 1);
    let mut session = engine.session();
    #[cfg(target_arch = "x86_64")]
    if kernels.isa == crate::Isa::Amx && width > 0 && [q, k, v].iter().all(|x| x.dtype() == Dtype::Bf16) {
        let sizes = amx::TiledSizes::new(&attention);
        return session.run(Need { jobs, work, floats: sizes.total() }, &|jobs, scratch| {
            // SAFETY: this table is handed out only where AMX is available; members run on threads of their own.
            let form = unsafe { amx::Tiled::new(&attention, sizes, scratch) };
            attention.run(jobs, form);
        });
    }
    let sizes = Sizes::new(&attention);
    session.run(Need { jobs, work, floats: sizes.total() }, &|jobs, scratch| {
        attention.run(jobs, Blocked::new(&attention, sizes, scratch));
    })
}

const OP: &str = "sdpa";

fn check(q: &View<'_>, k: &View<'_>, v: &View<'_>, config: &SdpaConfig<'_>, out: &ViewMut<'_>) -> Result<()> {
    let ([batch, heads, queries, width], [_, kv_heads, keys, _]) = (q.shape(), k.shape());
    let expect = |what, got: [usize; 4], wanted: [usize; 4]| {
        if got == wanted {
            return Ok(());
        }
        Err(Error::Shape { op: OP, what, got: got.into(), wanted: wanted.into() })
    };
    expect("k", k.shape(), [batch, kv_heads, keys, width])?;
    expect("v", v.shape(), [batch, kv_heads, keys, v.shape()[3]])?;
    expect("out", out.shape(), [batch, heads, queries, v.shape()[3]])?;
    for (what, dtype) in [("q", q.dtype()), ("k", k.dtype()), ("v", v.dtype()), ("out", out.dtype())] {
        check_float(OP, what, dtype)?;
    }
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        let wanted = format!("a multiple of the {kv_heads} key heads");
        return Err(Error::Range { op: OP, what: "number of query heads", got: heads, wanted });
    }
    if config.causal && queries != keys {
        let wanted = format!("{keys} as of k, with causal");
        return Err(Error::Range { op: OP, what: "number of queries", got: queries, wanted });
    }
    if let Some(mask) = &config.mask {
        check_float(OP, "mask", mask.dtype())?;
    }
    if let Some(valid) = config.kv_valid {
        if valid.len() != batch {
            return Err(Error::Shape {
                op: OP,
                what: "kv_valid",
                got: vec![valid.len()],
                wanted: vec![batch],
            });
        }
        if let Some(&got) = valid.iter().find(|&&n| n > keys) {
            return Err(Error::Range { op: OP, what: "kv_valid", got, wanted: format!("at most {keys}") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
