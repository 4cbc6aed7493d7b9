//! Normalisation of one key and its inverse, value by value, in the order of operations of NVIDIA's `Normalizer`
//! (GR00T N1.5, `gr00t/data/transform/state_action.py`), so that the last bit agrees.

use super::real::Real;
use crate::embodiment::NormalizationMode;

/// A value above this is on.
const BINARY_THRESHOLD: f64 = 0.5;

/// What one key's normalisation needs, one entry per value: the bounds of the ranged modes, or mean and deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalizer {
    mode: NormalizationMode,
    params: Vec<Param>,
}

/// The two statistics of one value: (min, max), (q01, q99) or (mean, std), whichever the mode uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    /// min, q01 or mean.
    pub a: f64,
    /// max, q99 or std.
    pub b: f64,
}

impl Normalizer {
    /// A normaliser for `params.len()` values.
    pub fn new(mode: NormalizationMode, params: Vec<Param>) -> Self {
        Self { mode, params }
    }

    /// The mode.
    pub fn mode(&self) -> NormalizationMode {
        self.mode
    }

    /// The statistics per value.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Normalises `x` (one value per statistic) onto the end of `out`; sin_cos appends twice as many.
    pub fn forward<T: Real>(&self, x: &[T], out: &mut Vec<T>) {
        if self.mode == NormalizationMode::SinCos {
            out.extend(x.iter().map(|v| v.sin()));
            out.extend(x.iter().map(|v| v.cos()));
            return;
        }
        out.extend(x.iter().zip(&self.params).map(|(&x, p)| forward_value(self.mode, *p, x)));
    }

    /// Turns normalised values back in place. Modes without an inverse (scale, sin_cos) leave them; such a mode is refused
    /// for actions when they are loaded.
    pub fn inverse<T: Real>(&self, y: &mut [T]) {
        for (y, p) in y.iter_mut().zip(&self.params) {
            *y = inverse_value(self.mode, *p, *y);
        }
    }
}

fn forward_value<T: Real>(mode: NormalizationMode, param: Param, x: T) -> T {
    let [zero, one, two] = [0.0, 1.0, 2.0].map(T::from_f64);
    let (a, b) = (T::from_f64(param.a), T::from_f64(param.b));
    match mode {
        NormalizationMode::None | NormalizationMode::SinCos => x,
        NormalizationMode::MinMax if a == b => zero,
        NormalizationMode::MinMax => two * ((x - a) / (b - a)) - one,
        NormalizationMode::Q99 => {
            let y = if a == b { x } else { two * ((x - a) / (b - a)) - one };
            if y < -one {
                -one
            } else if y > one {
                one
            } else {
                y
            }
        }
        NormalizationMode::MeanStd if b == zero => x,
        NormalizationMode::MeanStd => (x - a) / b,
        NormalizationMode::Binary => on_or_off(x),
        NormalizationMode::Scale => {
            let largest = a.abs().max(b.abs());
            if largest == zero { zero } else { x / largest }
        }
    }
}

fn inverse_value<T: Real>(mode: NormalizationMode, param: Param, y: T) -> T {
    let [one, two] = [1.0, 2.0].map(T::from_f64);
    let (a, b) = (T::from_f64(param.a), T::from_f64(param.b));
    match mode {
        NormalizationMode::None | NormalizationMode::SinCos | NormalizationMode::Scale => y,
        NormalizationMode::MinMax | NormalizationMode::Q99 => (y + one) / two * (b - a) + a,
        NormalizationMode::MeanStd => y * b + a,
        NormalizationMode::Binary => on_or_off(y),
    }
}

fn on_or_off<T: Real>(x: T) -> T {
    T::from_f64(if x > T::from_f64(BINARY_THRESHOLD) { 1.0 } else { 0.0 })
}
