//! Normalisation rules value by value, and that un-normalising undoes them, for every mode and every built-in data config.
//! The expected numbers are worked out by hand from the rules of NVIDIA's `Normalizer` (GR00T N1.5).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gr00t_host::action::ActionTransform;
use gr00t_host::embodiment::NormalizationMode::{
    self, Binary, MeanStd, MinMax, None as Raw, Q99, Scale, SinCos,
};
use gr00t_host::embodiment::{DataConfig, EmbodimentMetadata, synthetic_metadata};
use gr00t_host::observation::Values;
use gr00t_host::state::normalize::{Normalizer, Param};
use gr00t_host::state::{Real, StateTransform};
use proptest::prelude::*;

/// Ranged statistics [-1, 3], or mean -1 and deviation 3; the second value has no range, or mean 2 and deviation 2.
const RANGED: [Param; 2] = [Param { a: -1.0, b: 3.0 }, Param { a: 2.0, b: 2.0 }];

fn forward<T: Real>(mode: NormalizationMode, params: &[Param], x: &[T]) -> Vec<T> {
    let mut out = Vec::new();
    Normalizer::new(mode, params.to_vec()).forward(x, &mut out);
    out
}

fn inverse<T: Real>(mode: NormalizationMode, params: &[Param], y: &[T]) -> Vec<T> {
    let mut y = y.to_vec();
    Normalizer::new(mode, params.to_vec()).inverse(&mut y);
    y
}

#[test]
fn min_max_is_not_clamped_and_gives_0_without_a_range() {
    assert_eq!(forward(MinMax, &RANGED, &[-1.0, 2.0]), [-1.0, 0.0]);
    assert_eq!(forward(MinMax, &RANGED, &[3.0, 7.0]), [1.0, 0.0]);
    assert_eq!(forward(MinMax, &RANGED, &[7.0_f32, -2.0]), [3.0, 0.0]);
    assert_eq!(inverse(MinMax, &RANGED, &[3.0_f32, 5.0]), [7.0, 2.0], "no range gives the bound itself");
}

#[test]
fn q99_is_clamped_even_where_it_passes_the_value_through() {
    assert_eq!(forward(Q99, &RANGED, &[1.0, 0.25]), [0.0, 0.25]);
    assert_eq!(forward(Q99, &RANGED, &[-9.0, 2.0]), [-1.0, 1.0]);
    assert_eq!(forward(Q99, &RANGED, &[9.0_f32, -2.0]), [1.0, -1.0]);
    assert_eq!(inverse(Q99, &RANGED, &[0.0, 0.5]), [1.0, 2.0]);
}

#[test]
fn mean_std_passes_through_without_a_deviation() {
    let params = [Param { a: -1.0, b: 2.0 }, Param { a: 5.0, b: 0.0 }];
    assert_eq!(forward(MeanStd, &params, &[3.0, 8.0]), [2.0, 8.0]);
    assert_eq!(inverse(MeanStd, &params, &[2.0, 8.0]), [3.0, 5.0]);
    let tiny = [Param { a: 0.0, b: 1e-12 }];
    assert_eq!(forward(MeanStd, &tiny, &[1e-12]), [1.0], "a tiny deviation is a deviation");
}

#[test]
fn binary_is_above_one_half() {
    let params = [Param { a: 0.0, b: 0.0 }; 4];
    assert_eq!(forward(Binary, &params, &[0.5, 0.500_001, -3.0, 1.0]), [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(inverse(Binary, &params, &[0.5_f32, 0.6, f32::NAN, 9.0]), [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn scale_divides_by_the_largest_magnitude() {
    let params = [Param { a: -4.0, b: 2.0 }, Param { a: 0.0, b: 0.0 }];
    assert_eq!(forward(Scale, &params, &[2.0, 3.0]), [0.5, 0.0]);
}

#[test]
fn sin_cos_puts_all_sines_before_all_cosines() {
    let x = [0.25, -1.5];
    assert_eq!(forward(SinCos, &[], &x), [x[0].sin(), x[1].sin(), x[0].cos(), x[1].cos()]);
}

#[test]
fn not_a_number_stays_one() {
    for mode in [Raw, MinMax, Q99, MeanStd] {
        let params = [Param { a: -1.0, b: 3.0 }];
        assert!(forward(mode, &params, &[f64::NAN])[0].is_nan(), "{mode}");
        assert!(inverse(mode, &params, &[f32::NAN])[0].is_nan(), "{mode}");
    }
}

#[test]
fn statistics_are_rounded_to_the_precision_of_the_values() {
    let params = [Param { a: 0.1, b: 0.7 }];
    let by_hand = 2.0 * ((0.3_f32 - 0.1) / (0.7_f32 - 0.1)) - 1.0;
    assert_eq!(forward(MinMax, &params, &[0.3_f32]), [by_hand]);
}

proptest! {
    /// GR#244, GR#661: a key that is normalised one way and un-normalised another.
    #[test]
    fn the_inverse_undoes_every_mode(lo in -10.0..10.0_f64, range in 0.01..10.0_f64, share in 0.0..1.0_f64) {
        let x = [lo + share * range];
        for mode in [Raw, MinMax, Q99, MeanStd] {
            let params = [Param { a: lo, b: if mode == MeanStd { range } else { lo + range } }];
            let back = inverse(mode, &params, &forward(mode, &params, &x));
            prop_assert!((back[0] - x[0]).abs() < 1e-12, "{mode}: {} {}", x[0], back[0]);
            let single = [x[0] as f32];
            let back = inverse(mode, &params, &forward(mode, &params, &single));
            prop_assert!((back[0] - single[0]).abs() < 1e-5, "{mode}: {} {}", single[0], back[0]);
        }
    }
}

proptest! {
    // Each case goes through all sixteen configs.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn actions_that_were_normalised_come_back_for_every_built_in_config(shares in proptest::collection::vec(0.05..0.95_f64, 32)) {
        for name in DataConfig::builtin_names() {
            let (config, metadata) = bound(name);
            let transform = ActionTransform::new(&config, &metadata, 32).unwrap();
            let mut row = Vec::new();
            let mut wanted = Vec::new();
            for key in transform.keys() {
                let statistics = &metadata.statistics.action[key.key()];
                let bounds = statistics.min.iter().zip(&statistics.max);
                let physical: Vec<f32> = bounds
                    .zip(shares.iter().skip(row.len()))
                    .map(|((lo, hi), share)| (lo + share * (hi - lo)) as f32)
                    .map(|v| if key.mode() == Binary { v.round() } else { v })
                    .collect();
                key.forward(&physical, &mut row);
                wanted.push(physical);
            }
            row.resize(32, 0.0);
            let chunk = transform.apply(&row, 1).unwrap();
            prop_assert_eq!(chunk.out_of_range, 0, "{}", name);
            for (group, wanted) in chunk.groups.iter().zip(&wanted) {
                for (got, wanted) in group.values.iter().zip(wanted) {
                    prop_assert!((got - wanted).abs() < 2e-5, "{name} {}: {got} wanted {wanted}", group.key);
                }
            }
        }
    }

    #[test]
    fn states_inside_their_statistics_are_finite_and_not_warned_of(share in 0.05..0.95_f64, single: bool) {
        for name in DataConfig::builtin_names() {
            let (config, metadata) = bound(name);
            let transform = StateTransform::new(&config, &metadata, 64).unwrap();
            let state: BTreeMap<String, Values> = transform
                .keys()
                .iter()
                .map(|key| {
                    let statistics = &metadata.statistics.state[key.key()];
                    let bounds = statistics.min.iter().zip(&statistics.max);
                    let values = Values::F64(bounds.map(|(lo, hi)| lo + share * (hi - lo)).collect());
                    (key.key().to_owned(), if single { Values::F32(values.to_f32()) } else { values })
                })
                .collect();
            let vector = transform.apply(&state).unwrap();
            prop_assert_eq!(vector.values.len(), 64);
            prop_assert!(vector.values.iter().all(|v| v.is_finite() && v.abs() <= 1.0 + 1e-6), "{}", name);
            prop_assert!(vector.values.iter().skip(vector.dim()).all(|&v| v == 0.0));
            prop_assert!(vector.warnings.is_empty(), "{}: {:?}", name, vector.warnings);
        }
    }
}

fn bound(name: &str) -> (DataConfig, EmbodimentMetadata) {
    let config = DataConfig::builtin(name).unwrap();
    let metadata = synthetic_metadata(&config).unwrap();
    let embodiment = metadata.embodiment(&config.embodiment).unwrap().0.clone();
    (config, embodiment)
}
