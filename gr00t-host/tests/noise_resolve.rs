//! The noise of one prediction: seeds, explicit values, fresh seeds.

use gr00t_host::noise::{Noise, fresh_seed, torch_randn};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_size_is_finite_and_depends_on_the_low_half_of_the_seed_alone(seed: u64, elements in 0_usize..2000) {
        let values = torch_randn(seed, elements);
        prop_assert_eq!(values.len(), elements);
        prop_assert!(values.iter().all(|value| value.is_finite() && value.abs() < 7.0));
        prop_assert_eq!(values, torch_randn(seed & u64::from(u32::MAX), elements));
    }

    #[test]
    fn whole_blocks_are_a_prefix_of_any_longer_draw(seed: u64, blocks in 1_usize..20, more in 1_usize..20) {
        // the uniforms are drawn in order and each block of 16 uses its own
        let (short, long) = (torch_randn(seed, blocks * 16), torch_randn(seed, (blocks + more) * 16));
        prop_assert_eq!(&short[..], &long[..blocks * 16]);
    }

    #[test]
    fn explicit_values_are_kept_exactly_if_they_fit(values in prop::collection::vec(-9.0_f32..9.0, 1..80), dim in 1_usize..9) {
        let noise = Noise::Explicit(values.clone());
        let horizon = values.len() / dim;
        match noise.resolve(horizon, dim) {
            Ok(got) => prop_assert_eq!(got, values),
            Err(_) => prop_assert!(horizon * dim != values.len() || horizon == 0),
        }
    }
}

#[test]
fn moments_are_those_of_a_standard_normal() {
    let values: Vec<f64> = torch_randn(3, 1 << 18).into_iter().map(f64::from).collect();
    let count = values.len() as f64;
    let moment = |power: i32| values.iter().map(|v| v.powi(power)).sum::<f64>() / count;
    // five standard errors of each moment
    for (power, want, variance) in [(1, 0.0, 1.0_f64), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
        assert!(
            (moment(power) - want).abs() < 5.0 * (variance / count).sqrt(),
            "moment {power}: {}",
            moment(power)
        );
    }
}

#[test]
fn seed_zero_is_the_default_and_gives_torchs_values() {
    let noise = Noise::default().resolve(16, 32).expect("noise");
    assert_eq!(noise, torch_randn(0, 512));
    // torch 2.5.1: torch.randn(16, 32, generator=torch.Generator().manual_seed(0))[0, :3]
    assert_eq!(noise[..3], [-1.125_839_8, -1.152_360_2, -0.250_578_58]);
}

#[test]
fn fresh_noise_is_new_each_time_and_its_seed_fits_32_bits() {
    let draw = || Noise::Fresh.resolve(16, 32).expect("noise");
    assert_ne!(draw(), draw());
    let seeds: std::collections::HashSet<u64> = (0..100).map(|_| fresh_seed()).collect();
    assert!(seeds.len() > 90 && seeds.iter().all(|seed| u32::try_from(*seed).is_ok()));
}

#[test]
fn wrong_shapes_and_values_that_are_not_finite_are_refused() {
    let refusal = |noise: Noise, horizon, dim| noise.resolve(horizon, dim).expect_err("refused").to_string();
    assert_eq!(refusal(Noise::Explicit(vec![0.0; 3]), 2, 2), "noise: got 3 elements, wanted [2, 2] = 4");
    assert_eq!(refusal(Noise::Explicit(vec![0.0, f32::NAN]), 1, 2), "noise: element 1 is not finite");
    assert_eq!(refusal(Noise::Explicit(vec![f32::INFINITY]), 1, 1), "noise: element 0 is not finite");
    for (horizon, dim) in [(0, 32), (16, 0), (usize::MAX, 2), (1 << 30, 1 << 30), (1 << 20, 2)] {
        assert!(refusal(Noise::Seed(0), horizon, dim).starts_with("noise: shape ["));
    }
}
