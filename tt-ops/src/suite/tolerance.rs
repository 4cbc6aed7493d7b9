//! How near a result must be to the exact one, per op and data type of the result.

use serde::{Deserialize, Serialize};

use crate::dtype::DataType;

/// `|got - wanted| ≤ relative · |wanted| + absolute · rms(wanted)` for every element.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Share of the element's own size: the rounding of the result.
    pub relative: f64,
    /// Share of the root mean square of all elements: what sums and functions may lose before.
    pub absolute: f64,
}

impl Tolerance {
    /// Nothing may differ.
    pub const EXACT: Self = Self { relative: 0.0, absolute: 0.0 };

    /// The first element that is too far off, in words.
    pub fn failure(&self, got: &[f32], wanted: &[f64]) -> Option<String> {
        if got.len() != wanted.len() {
            return Some(format!("{} values, wanted {}", got.len(), wanted.len()));
        }
        let scale = rms(wanted);
        got.iter().zip(wanted).enumerate().find_map(|(index, (&got, &wanted))| {
            let bound = self.relative * wanted.abs() + self.absolute * scale;
            let near = (f64::from(got) - wanted).abs() <= bound;
            (!near).then(|| format!("element {index} is {got:e}, wanted {wanted:e} within {bound:e}"))
        })
    }
}

/// The tolerance of an op's result.
///
/// Rounding a result to `bfloat16` costs half a unit in the last place, 2⁻⁹ of it; the bound is a whole one, because
/// a value that is a hair off before may fall to the other side. What comes before is fp32.
pub fn tolerance(op: &str, dtype: DataType) -> Tolerance {
    /// One unit in the last place.
    const BF16: f64 = 1.0 / 256.0;
    /// Several units in the last place of fp32: long sums.
    const F32: f64 = 2e-5;
    let moves = matches!(
        op,
        "concat"
            | "slice"
            | "reshape"
            | "permute"
            | "split_query_key_value_and_split_heads"
            | "concatenate_heads"
            | "embedding"
            | "typecast"
            | "clone"
            | "to_layout"
    );
    if moves {
        return Tolerance::EXACT;
    }
    let relative = if dtype == DataType::Float32 { F32 } else { BF16 };
    let absolute = match op {
        "linear" | "matmul" | "scaled_dot_product_attention" | "layer_norm" | "rms_norm" | "softmax" => 1e-5,
        _ => 1e-6,
    };
    Tolerance { relative, absolute }
}

/// The tolerance of an op's result on the card, whose kernels are less precise than fp32. Set by hand, wide enough for what
/// the functional simulator gives; `docs/metal.md` has the measured differences.
pub fn card_tolerance(op: &str, dtype: DataType) -> Tolerance {
    /// Two units in the last place of bfloat16: a result and an operand that the matrix engine truncates.
    const BF16: f64 = 2.0 / 256.0;
    let exact = tolerance(op, dtype);
    if exact == Tolerance::EXACT && op != "typecast" {
        return exact;
    }
    let absolute = match op {
        // weights of the softmax are a few percent off, each its own way
        "scaled_dot_product_attention" => 0.15,
        "linear" | "matmul" | "softmax" | "layer_norm" | "rms_norm" | "rotary_embedding" => 0.02,
        // by erf where tanh was asked for
        "gelu" => 1e-3,
        _ => 5e-3,
    };
    Tolerance { relative: BF16, absolute }
}

/// How far two results are apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Largest difference of two elements.
    pub max_abs: f64,
    /// Root mean square of the differences over that of the wanted values.
    pub relative_rms: f64,
    /// Pearson correlation; 1 where both are constant.
    pub pcc: f64,
}

impl Difference {
    /// Compares `got` with `wanted`; NaN differences are infinite.
    pub fn between(got: &[f32], wanted: &[f64]) -> Self {
        let differences: Vec<f64> = got
            .iter()
            .zip(wanted)
            .map(|(&g, &w)| (f64::from(g) - w).abs())
            .map(|d| if d.is_nan() { f64::INFINITY } else { d })
            .collect();
        let max_abs = differences.iter().copied().fold(0.0, f64::max);
        let relative_rms = rms(&differences) / rms(wanted).max(f64::MIN_POSITIVE);
        let got: Vec<f64> = got.iter().map(|&g| f64::from(g)).collect();
        Self { max_abs, relative_rms, pcc: pcc(&got, wanted) }
    }
}

/// The largest difference of two elements in units of the last place that a wanted value of that size has in `dtype`; what is
/// smaller than the root mean square of all counts as that large, since sums that cancel have no last place to speak of.
pub fn ulps(got: &[f32], wanted: &[f64], dtype: DataType) -> f64 {
    /// Bits after the leading one.
    const fn bits(dtype: DataType) -> i32 {
        match dtype {
            DataType::Float32 => 23,
            DataType::Bfloat16 => 7,
            DataType::Bfloat8B => 6,
            DataType::Bfloat4B => 2,
            DataType::Uint32 | DataType::Int32 => 0,
        }
    }
    let least = rms(wanted).max(f64::MIN_POSITIVE);
    got.iter().zip(wanted).fold(0.0, |most, (&got, &wanted)| {
        let size = wanted.abs().max(least);
        let ulp = (size.log2().floor() - f64::from(bits(dtype))).exp2();
        let off = (f64::from(got) - wanted).abs() / ulp;
        if off.is_nan() { f64::INFINITY } else { most.max(off) }
    })
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

fn pcc(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
    let (ma, mb) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - ma) * (y - mb);
        aa += (x - ma).powi(2);
        bb += (y - mb).powi(2);
    }
    if aa == 0.0 && bb == 0.0 { 1.0 } else { ab / (aa * bb).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_never_near() {
        assert!(tolerance("add", DataType::Bfloat16).failure(&[f32::NAN], &[1.0]).is_some());
        assert_eq!(Difference::between(&[f32::NAN], &[1.0]).max_abs, f64::INFINITY);
    }

    #[test]
    fn units_in_the_last_place_are_those_of_the_wanted_value() {
        let got = [1.0 + 3.0 / 128.0, 2.0 + 1.0 / 64.0];
        assert_eq!(ulps(&got[..1], &[1.0], DataType::Bfloat16), 3.0);
        assert_eq!(ulps(&got[1..], &[2.0], DataType::Bfloat16), 1.0);
        // The zero counts as large as the rms, which is between 0.5 and 1.
        assert_eq!(ulps(&[1.0, 1.0 / 256.0], &[1.0, 0.0], DataType::Bfloat16), 1.0);
        assert_eq!(ulps(&[f32::NAN, 1.0], &[1.0, 1.0], DataType::Float32), f64::INFINITY);
    }

    #[test]
    fn one_unit_in_the_last_place_is_near() {
        let tolerance = tolerance("add", DataType::Bfloat16);
        assert_eq!(tolerance.failure(&[1.0], &[1.0039]), None);
        assert!(tolerance.failure(&[1.0], &[1.02]).is_some());
    }
}
