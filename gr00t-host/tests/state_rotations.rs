//! Rotations: pytorch3d's conventions on values known from geometry, edge cases, and round trips.
#![allow(clippy::unwrap_used)]

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, PI};

use gr00t_host::embodiment::RotationType::{self, AxisAngle, Matrix, Quaternion, Rotation6d};
use gr00t_host::state::{Real, convert_rotation};
use proptest::prelude::*;

const EULER_ORDERS: [&str; 6] = ["rpy", "ryp", "pry", "pyr", "yrp", "ypr"];

fn euler(order: &str) -> RotationType {
    format!("euler_angles_{order}").parse().unwrap()
}

fn convert<T: Real>(from: RotationType, to: RotationType, values: &[T]) -> Vec<T> {
    let mut out = Vec::new();
    convert_rotation(from, to, values, &mut out);
    assert_eq!(out.len(), to.dim());
    out
}

fn assert_near(got: &[f64], wanted: &[f64], tolerance: f64) {
    let near = got.len() == wanted.len() && got.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(near, "{got:?} wanted {wanted:?}");
}

#[test]
fn a_quarter_turn_about_each_axis() {
    // Each turns the other two axes' unit vectors into one another, counter-clockwise.
    let turns = [
        ([FRAC_PI_2, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]),
        ([0.0, FRAC_PI_2, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]),
        ([0.0, 0.0, FRAC_PI_2], [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    ];
    for (axis, (vector, matrix)) in turns.iter().enumerate() {
        let mut quaternion = vec![FRAC_1_SQRT_2, 0.0, 0.0, 0.0];
        quaternion[axis + 1] = FRAC_1_SQRT_2;
        assert_near(&convert(AxisAngle, Matrix, vector), matrix, 1e-15);
        assert_near(&convert(euler("rpy"), Matrix, vector), matrix, 1e-15);
        assert_near(&convert(Quaternion, Matrix, &quaternion), matrix, 1e-15);
        assert_near(&convert(Matrix, Quaternion, matrix), &quaternion, 1e-15);
        assert_near(&convert(Matrix, Rotation6d, matrix), &matrix[..6], 0.0);
    }
}

#[test]
fn euler_angles_are_intrinsic_in_the_order_of_their_letters() {
    let angles = [0.3, -0.4, 0.5];
    for order in EULER_ORDERS {
        let one = |index: usize| {
            let mut vector = [0.0; 3];
            vector["rpy".find(order.as_bytes()[index] as char).unwrap()] = angles[index];
            convert(AxisAngle, Matrix, &vector)
        };
        let product = |a: &[f64], b: &[f64]| -> Vec<f64> {
            (0..9).map(|n| (0..3).map(|k| a[n / 3 * 3 + k] * b[k * 3 + n % 3]).sum()).collect()
        };
        let wanted = product(&product(&one(0), &one(1)), &one(2));
        assert_near(&convert(euler(order), Matrix, &angles), &wanted, 1e-15);
    }
}

#[test]
fn quaternions_come_out_with_a_real_part_that_is_not_negative() {
    let q = [-0.5, 0.5, -0.5, 0.5];
    assert_near(
        &convert(Matrix, Quaternion, &convert(Quaternion, Matrix, &q)),
        &[0.5, -0.5, 0.5, -0.5],
        1e-15,
    );
}

#[test]
fn half_turns_use_the_best_conditioned_quaternion() {
    for vector in [[PI, 0.0, 0.0], [0.0, PI, 0.0], [0.0, 0.0, PI]] {
        assert_near(&convert(Matrix, AxisAngle, &convert(AxisAngle, Matrix, &vector)), &vector, 1e-12);
    }
}

#[test]
fn a_quaternion_of_another_length_is_read_as_if_it_were_a_unit_one() {
    let unit = [0.5, 0.5, 0.5, 0.5];
    let long = unit.map(|x| x * 3.0);
    assert_near(&convert(Quaternion, Rotation6d, &long), &convert(Quaternion, Rotation6d, &unit), 1e-15);
}

#[test]
fn what_is_no_rotation_gives_no_number() {
    assert!(convert(Quaternion, Rotation6d, &[0.0_f64; 4]).iter().any(|x| x.is_nan()));
    // Beyond gimbal lock by rounding: the sine of the middle angle is above 1.
    let above = [0.0_f64, 0.0, 1.0 + 1e-15, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0];
    assert!(convert(Matrix, euler("rpy"), &above)[1].is_nan());
}

#[test]
fn gimbal_lock_is_finite() {
    let back = convert(Matrix, euler("rpy"), &convert(euler("rpy"), Matrix, &[0.2, FRAC_PI_2, 0.1]));
    assert!(back.iter().all(|x| x.is_finite()) && (back[1] - FRAC_PI_2).abs() < 1e-7, "{back:?}");
}

#[test]
fn rotation_6d_is_straightened() {
    // Rows of any length and not at right angles: Gram-Schmidt keeps the first direction.
    let matrix = convert(Rotation6d, Matrix, &[2.0, 0.0, 0.0, 5.0, 3.0, 0.0]);
    assert_near(&matrix, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 1e-15);
    assert!(convert(Rotation6d, Matrix, &[0.0; 6]).iter().all(|x: &f64| x.is_finite()));
}

#[test]
fn the_same_representation_is_passed_through_untouched() {
    assert_eq!(convert(Quaternion, Quaternion, &[-3.0, 0.0, 0.0, 1.0]), [-3.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_tiny_angle_uses_the_series() {
    let tiny = [1e-9, -2e-9, 0.0];
    assert_near(&convert(Matrix, AxisAngle, &convert(AxisAngle, Matrix, &tiny)), &tiny, 1e-15);
    assert_eq!(convert(AxisAngle, Quaternion, &[0.0; 3]), [1.0, 0.0, 0.0, 0.0]);
}

proptest! {
    #[test]
    fn every_pair_of_representations_makes_a_round_trip(x in -1.0..1.0_f64, y in -1.0..1.0_f64, z in -1.0..1.0_f64) {
        let mut types = vec![AxisAngle, Quaternion, Rotation6d, Matrix];
        types.extend(EULER_ORDERS.map(euler));
        for &from in &types {
            let start = convert(AxisAngle, from, &[x, y, z]);
            for &to in &types {
                let back = convert(to, from, &convert(from, to, &start));
                prop_assert!(start.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-6), "{from} {to}: {start:?} {back:?}");
            }
            let single: Vec<f32> = start.iter().map(|&v| v as f32).collect();
            let back = convert(Rotation6d, from, &convert(from, Rotation6d, &single));
            prop_assert!(single.iter().zip(&back).all(|(a, b)| (a - b).abs() < 2e-3), "{from}: {single:?} {back:?}");
        }
    }
}
