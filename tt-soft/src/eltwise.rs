//! Element-wise kernels over views, softmax and rotary embedding. Arithmetic is fp32, a result is rounded once.

use crate::activation::Activation;
use crate::engine::{Engine, Need};
use crate::error::{Error, Result};
use crate::matmul::check_float;
use crate::rows::CHUNK;
use crate::view::{View, ViewMut};

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unary {
    /// x itself.
    Identity,
    /// An activation function.
    Activation(Activation),
    /// e^x.
    Exp,
    /// -x.
    Neg,
    /// |x|.
    Abs,
    /// x^2.
    Square,
    /// Square root.
    Sqrt,
    /// 1 / sqrt(x).
    Rsqrt,
    /// 1 / x.
    Reciprocal,
}

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binary {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a b.
    Mul,
    /// a / b.
    Div,
    /// The larger; NaN if one is.
    Max,
    /// The smaller; NaN if one is.
    Min,
}

/// The second operand of [`binary`].
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    /// A view that broadcasts to out's shape.
    View(View<'a>),
    /// One number for all elements.
    Scalar(f32),
}

/// `out = f(x)`; x broadcasts to out's shape. float32 or bfloat16.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn unary(engine: &Engine, f: Unary, x: &View<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    const OP: &str = "unary";
    let x = operand(OP, "x", x, out)?.raw();
    check_float(OP, "out", out.dtype())?;
    if out.is_empty() {
        return Ok(());
    }
    let (out, kernels) = (out.raw(), engine.kernels());
    let width = out.geometry.shape[3];
    let need = Need { jobs: out.geometry.rows(), work: out.geometry.len(), floats: 0 };
    engine.session().run(need, &|rows, _| {
        let mut buf = [0f32; CHUNK];
        for row in rows {
            for start in (0..width).step_by(CHUNK) {
                let buf = &mut buf[..CHUNK.min(width - start)];
                // SAFETY: x has out's shape, and each row of out has one writer.
                unsafe {
                    x.load(kernels, row, start, buf);
                    (kernels.unary)(f, buf);
                    out.store(kernels, row, start, buf);
                }
            }
        }
    })
}

/// `out = a op b`; both broadcast to out's shape. float32 or bfloat16, in any mixture.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn binary(
    engine: &Engine,
    f: Binary,
    a: &View<'_>,
    b: &Operand<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    binary_fused(engine, f, Fused::default(), a, b, out)
}

/// Activations around a [`Binary`]: `result(lhs(a) op rhs(b))`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fused {
    /// Applied to a.
    pub lhs: Option<Activation>,
    /// Applied to b where it is a view; a scalar is taken as it is.
    pub rhs: Option<Activation>,
    /// Applied to the result.
    pub result: Option<Activation>,
}

/// [`binary`] with activations, in fp32 throughout.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn binary_fused(
    engine: &Engine,
    f: Binary,
    fused: Fused,
    a: &View<'_>,
    b: &Operand<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    const OP: &str = "binary";
    let a = operand(OP, "a", a, out)?.raw();
    let (b, scalar) = match b {
        Operand::View(b) => (Some(operand(OP, "b", b, out)?.raw()), 0.0),
        Operand::Scalar(b) => (None, *b),
    };
    check_float(OP, "out", out.dtype())?;
    if out.is_empty() {
        return Ok(());
    }
    let (out, kernels) = (out.raw(), engine.kernels());
    let apply = |activation: Option<Activation>, values: &mut [f32]| {
        if let Some(activation) = activation {
            (kernels.activation)(activation, values);
        }
    };
    let width = out.geometry.shape[3];
    let need = Need { jobs: out.geometry.rows(), work: out.geometry.len(), floats: 0 };
    engine.session().run(need, &|rows, _| {
        let (mut left, mut right) = ([0f32; CHUNK], [scalar; CHUNK]);
        for row in rows {
            for start in (0..width).step_by(CHUNK) {
                let len = CHUNK.min(width - start);
                let (left, right) = (&mut left[..len], &mut right[..len]);
                // SAFETY: a and b have out's shape, and each row of out has one writer.
                unsafe {
                    a.load(kernels, row, start, left);
                    apply(fused.lhs, left);
                    if let Some(b) = &b {
                        b.load(kernels, row, start, right);
                        apply(fused.rhs, right);
                    }
                    (kernels.binary)(f, left, right);
                    apply(fused.result, left);
                    out.store(kernels, row, start, left);
                }
            }
        }
    })
}

/// Softmax over the last dimension, with the maximum subtracted. A row of `-inf` gives zeros. Shapes are equal; float32 or
/// bfloat16.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn softmax(engine: &Engine, x: &View<'_>, out: &mut ViewMut<'_>) -> Result<()> {
    const OP: &str = "softmax";
    if x.shape() != out.shape() {
        return Err(Error::Shape { op: OP, what: "out", got: out.shape().into(), wanted: x.shape().into() });
    }
    check_float(OP, "x", x.dtype())?;
    check_float(OP, "out", out.dtype())?;
    if out.is_empty() {
        return Ok(());
    }
    let (x, out, kernels) = (x.raw(), out.raw(), engine.kernels());
    let need = Need { jobs: x.geometry.rows(), work: x.geometry.len(), floats: x.geometry.shape[3] };
    engine.session().run(need, &|rows, buf| {
        for row in rows {
            // SAFETY: x has out's shape, and each row of out has one writer.
            unsafe {
                x.load(kernels, row, 0, buf);
                (kernels.softmax)(buf);
                out.store(kernels, row, 0, buf);
            }
        }
    })
}

/// Rotary embedding in its half-split form: `out = x * cos + rotate_half(x) * sin`, with
/// `rotate_half(x) = [-x2, x1]` of x's halves.
///
/// x and out are [B, H, S, E] with even E, float32 or bfloat16; cos and sin are [1, 1, S, E] or [B, 1, S, E] (a position per
/// batch entry), float32 or bfloat16.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn rotary(
    engine: &Engine,
    x: &View<'_>,
    cos: &View<'_>,
    sin: &View<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    const OP: &str = "rotary";
    if x.shape() != out.shape() {
        return Err(Error::Shape { op: OP, what: "out", got: out.shape().into(), wanted: x.shape().into() });
    }
    let width = x.shape()[3];
    if !width.is_multiple_of(2) {
        return Err(Error::Range {
            op: OP,
            what: "width of x",
            got: width,
            wanted: "an even number".to_owned(),
        });
    }
    check_float(OP, "x", x.dtype())?;
    check_float(OP, "out", out.dtype())?;
    let (cos, sin) = (operand(OP, "cos", cos, out)?.raw(), operand(OP, "sin", sin, out)?.raw());
    if out.is_empty() {
        return Ok(());
    }
    let (x, out, kernels) = (x.raw(), out.raw(), engine.kernels());
    let need = Need { jobs: x.geometry.rows(), work: 3 * x.geometry.len(), floats: 3 * width };
    engine.session().run(need, &|rows, scratch| {
        let (values, tables) = scratch.split_at_mut(width);
        let (c, s) = tables.split_at_mut(width);
        for row in rows {
            // SAFETY: all views have out's shape, and each row of out has one writer.
            unsafe {
                x.load(kernels, row, 0, values);
                cos.load(kernels, row, 0, c);
                sin.load(kernels, row, 0, s);
            }
            let half = width / 2;
            let (first, second) = values.split_at_mut(half);
            (kernels.rotate)(first, second, [&c[..half], &s[..half], &c[half..], &s[half..]]);
            // SAFETY: as above.
            unsafe { out.store(kernels, row, 0, values) };
        }
    })
}

/// An operand, broadcast to out's shape.
fn operand<'a>(op: &'static str, what: &'static str, x: &View<'a>, out: &ViewMut<'_>) -> Result<View<'a>> {
    check_float(op, what, x.dtype())?;
    x.broadcast(out.shape()).map_err(|_| Error::Shape {
        op,
        what,
        got: x.shape().into(),
        wanted: out.shape().into(),
    })
}

#[cfg(test)]
#[path = "eltwise_tests.rs"]
mod tests;
