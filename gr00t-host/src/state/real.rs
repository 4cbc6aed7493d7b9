//! The two precisions that states come in. Upstream normalises in the observation's own precision, so the maths
//! is written once over this trait.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::atan2f::atan2f;
use super::{asin_f32, sin_f32, sin_f64};

mod sealed {
    /// What keeps other types out.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64 and nothing else, with the functions that normalisation and rotations need.
pub trait Real:
    sealed::Sealed
    + Copy
    + std::fmt::Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Nearest value of this precision.
    fn from_f64(value: f64) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// Sine of an angle in radians.
    #[must_use]
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    #[must_use]
    fn cos(self) -> Self;
    /// Arc sine; NaN outside `[-1, 1]`.
    #[must_use]
    fn asin(self) -> Self;
    /// Angle of the point (`x`, `self`).
    #[must_use]
    fn atan2(self, x: Self) -> Self;
    /// Square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// `self × a + b`, rounded once.
    #[must_use]
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// Magnitude.
    #[must_use]
    fn abs(self) -> Self {
        if self < Self::from_f64(0.0) { -self } else { self }
    }

    /// The larger; `other` if `self` is NaN.
    #[must_use]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

/// Sines and cosines have upstream's last bit; arc functions are the standard library's.
impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn sin(self) -> Self {
        sin_f64::sin(self)
    }

    fn cos(self) -> Self {
        sin_f64::cos(self)
    }

    fn asin(self) -> Self {
        f64::asin(self)
    }

    fn atan2(self, x: Self) -> Self {
        f64::atan2(self, x)
    }

    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }

    fn mul_add(self, a: Self, b: Self) -> Self {
        f64::mul_add(self, a, b)
    }
}

/// Sines, cosines and arc functions have upstream's last bit.
impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn sin(self) -> Self {
        sin_f32::sin(self)
    }

    fn cos(self) -> Self {
        sin_f32::cos(self)
    }

    fn asin(self) -> Self {
        asin_f32::asin(self)
    }

    fn atan2(self, x: Self) -> Self {
        atan2f(self, x)
    }

    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }

    fn mul_add(self, a: Self, b: Self) -> Self {
        f32::mul_add(self, a, b)
    }
}
