//! Bits of elementary functions: what torch 2.5.1 gives on x86, argument and result as bit patterns. The sines and cosines come from a
//! processor on which its math library takes no fused steps; three in four are not the correctly rounded ones.

use gr00t_host::state::Real;
use proptest::prelude::*;

/// The middle Euler angles of the golden `oxe_droid` actions: the matrix entry and the angle.
const ASIN_F32: [(u32, u32); 32] = [
    (0x3e3c840d, 0x3e3d98e6),
    (0x3f559666, 0x3f7ca616),
    (0xbf065852, 0xbf0d6e32),
    (0x3ee254f5, 0x3eea7043),
    (0x3e9ccaed, 0x3e9f5a5b),
    (0x3f0c4fe7, 0x3f148063),
    (0x3f260ffa, 0x3f34b29d),
    (0xbf2bee1b, 0xbf3c82aa),
    (0xbd5441c6, 0xbd545a1f),
    (0x3d5b559a, 0x3d5b7078),
    (0x3f3a6ed6, 0x3f50d653),
    (0x3ec2c690, 0x3ec7cf11),
    (0x3f4a1f50, 0x3f68f9aa),
    (0xbe77bf3e, 0xbe7a3ae1),
    (0xbf4a76b7, 0xbf698848),
    (0xbf1e68ed, 0xbf2acd98),
    (0xbee4269a, 0xbeec77e4),
    (0x3f18585a, 0x3f232bd8),
    (0x3f2e1a47, 0x3f3f7547),
    (0x3e96564b, 0x3e9895f3),
    (0x3f37f66a, 0x3f4d4245),
    (0x3f6c6a66, 0x3f96ab4e),
    (0xbee3f174, 0xbeec3c87),
    (0xbf504fff, 0xbf735597),
    (0xbf3ab769, 0xbf514051),
    (0x3f51e608, 0x3f761572),
    (0x3e26d514, 0x3e279450),
    (0x3f47e1b8, 0x3f655b67),
    (0x3f30ebaa, 0x3f435440),
    (0xbe732de8, 0xbe75866d),
    (0xbf549eb4, 0xbf7ae713),
    (0x3f4de848, 0x3f6f3dfc),
];

const SIN_F64: [(u64, u64); 16] = [
    (0xc02ed20c24a46679, 0xbfd2c603e9d3807d),
    (0xc034a92766aa6501, 0xbfef146935ff05f5),
    (0xc022d0519a1107e8, 0xbf92558a0f91acbb),
    (0xc02ac4ebb41be2dc, 0xbfe75bb3b9f7e7df),
    (0xc022d80e3deac714, 0xbf66e41291e4102b),
    (0x402322ebe73d1ec0, 0xbfc24bc1160e7085),
    (0x4031949c60eac64e, 0xbfee8ddd3acec0bb),
    (0x40314c3d6e3d5886, 0xbfeffe835ecc33f7),
    (0x401b68d6cc00e9c0, 0x3fe13f1f8c37d0c7),
    (0xc000e4fc49c4e088, 0xbfeb6e1450e2c3b5),
    (0xc0219796831a0888, 0xbfe2d1b7519a7cbf),
    (0x4033eced81e31260, 0x3fec294663f60e5f),
    (0xc00e99d420ff9b30, 0x3fe43574bb971e91),
    (0xc0227e2614576a38, 0xbfc6b6a5f4d8f882),
    (0xc0191590a7655b78, 0x3f88d531dbe9222f),
    (0x40325837b6efa46a, 0xbfdef6112cee31e4),
];

const COS_F64: [(u64, u64); 16] = [
    (0xc03d16054e8a4c2a, 0xbfe6065e2bc2a3a7),
    (0xc03b649c3def3394, 0xbfe45b2c3e515172),
    (0xc036c85337d538d5, 0xbfe67dea794ff75c),
    (0xc0217c1bdac0f05e, 0xbfe8d59bd5e8d40d),
    (0xc005626498d5a6e0, 0xbfec8d1a29871e6d),
    (0xc020ba00a8505204, 0xbfdf3459da0b66a5),
    (0x402f2a7eb5b894f8, 0xbfefc01e64e2abd1),
    (0x401ce2c5f21dc0f8, 0x3fe2eaf63912184c),
    (0xc028759eec0193e8, 0x3fee342cd24cf36f),
    (0xc0386053aca1496d, 0x3fe745c5d4de275b),
    (0x403b618b5d612f52, 0xbfe40f19eb88a02f),
    (0x401e74760f267fb0, 0x3fce74ff546ae8d4),
    (0xc0344c2a14dd2b04, 0x3fbf5de50b6ebed2),
    (0x400dc6674e141640, 0xbfeac306c44e8b81),
    (0xc01d30baa8985884, 0x3fe0e66ccafb75bb),
    (0x401c42e8033bfa10, 0x3fe6b3630dc3fb79),
];

#[test]
fn single_precision_arc_sines_are_torchs() {
    for (x, wanted) in ASIN_F32 {
        assert_eq!(Real::asin(f32::from_bits(x)).to_bits(), wanted, "asin({})", f32::from_bits(x));
    }
}

#[test]
fn double_precision_sines_and_cosines_are_torchs() {
    for (x, wanted) in SIN_F64 {
        assert_eq!(Real::sin(f64::from_bits(x)).to_bits(), wanted, "sin({})", f64::from_bits(x));
    }
    for (x, wanted) in COS_F64 {
        assert_eq!(Real::cos(f64::from_bits(x)).to_bits(), wanted, "cos({})", f64::from_bits(x));
    }
}

#[test]
fn edges_of_the_arc_sine() {
    use std::f32::consts::FRAC_PI_2;
    assert_eq!(Real::asin(1.0_f32), FRAC_PI_2);
    assert_eq!(Real::asin(-1.0_f32), -FRAC_PI_2);
    assert_eq!(Real::asin(-0.0_f32).to_bits(), (-0.0_f32).to_bits());
    assert_eq!(Real::asin(1e-30_f32), 1e-30);
    for outside in [1.000_000_1_f32, -2.0, f32::INFINITY, f32::NAN] {
        assert!(Real::asin(outside).is_nan(), "{outside}");
    }
}

#[test]
fn edges_of_the_double_precision_sine() {
    assert_eq!(Real::sin(-0.0_f64).to_bits(), (-0.0_f64).to_bits());
    assert_eq!(Real::sin(5e-324_f64), 5e-324);
    assert_eq!(Real::cos(0.0_f64), 1.0);
    assert_eq!(Real::sin(1e300_f64), 1e300_f64.sin());
    for no_angle in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        assert!(Real::sin(no_angle).is_nan() && Real::cos(no_angle).is_nan(), "{no_angle}");
    }
}

proptest! {
    #[test]
    fn arc_sine_is_near_the_true_one(x in -1.0_f32..=1.0) {
        let true_angle = f64::from(x).asin();
        prop_assert!((f64::from(Real::asin(x)) - true_angle).abs() <= true_angle.abs() * 1e-7);
    }

    #[test]
    fn sine_and_cosine_are_near_the_true_ones(x in -2e4_f64..2e4) {
        // Two units in the last place of a result; both libraries are within one of the true value.
        let near = |got: f64, wanted: f64| (got - wanted).abs() <= wanted.abs() * 2.0 * f64::EPSILON;
        prop_assert!(near(Real::sin(x), x.sin()), "sin({x})");
        prop_assert!(near(Real::cos(x), x.cos()), "cos({x})");
    }
}
