//! Conversions between representations of a rotation, always by way of the 3×3 matrix, with the conventions and
//! edge rules of pytorch3d 0.7 (`pytorch3d/transforms/rotation_conversions.py`), which upstream uses: column vectors,
//! real-first quaternions, intrinsic Euler angles, rotation_6d as the first two rows.
//!
//! Nothing here fails: a value that is no rotation (a zero quaternion, a matrix entry beyond 1) gives NaN or infinity,
//! as upstream; callers refuse those.

use super::real::Real;
use crate::embodiment::{Axis, RotationType};

/// A 3×3 matrix by rows.
type Matrix<T> = [[T; 3]; 3];

/// Below this angle in radians, sin(θ/2)/θ is taken from its series.
const SMALL_ANGLE: f64 = 1e-6;
/// Vectors shorter than this are divided by this instead of their length.
const NORMALIZE_FLOOR: f64 = 1e-12;
/// Quaternion candidates are divided by at least twice this.
const QUATERNION_FLOOR: f32 = 0.1;

/// Rewrites `values` from one representation to another, onto the end of `out`.
///
/// `values` must have `from.dim()` entries; missing ones count as 0.
pub fn convert<T: Real>(from: RotationType, to: RotationType, values: &[T], out: &mut Vec<T>) {
    if from == to {
        out.extend_from_slice(values);
        return;
    }
    let m = to_matrix(from, values);
    match to {
        RotationType::Matrix => out.extend(m.into_iter().flatten()),
        RotationType::Rotation6d => out.extend(m.into_iter().take(2).flatten()),
        RotationType::Quaternion => out.extend(matrix_to_quaternion(&m)),
        RotationType::AxisAngle => out.extend(quaternion_to_axis_angle(matrix_to_quaternion(&m))),
        RotationType::Euler(axes) => out.extend(matrix_to_euler(&m, axes)),
    }
}

fn num<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

fn take<T: Real, const N: usize>(values: &[T]) -> [T; N] {
    std::array::from_fn(|i| values.get(i).copied().unwrap_or(num(0.0)))
}

fn to_matrix<T: Real>(from: RotationType, values: &[T]) -> Matrix<T> {
    match from {
        RotationType::AxisAngle => quaternion_to_matrix(axis_angle_to_quaternion(take(values))),
        RotationType::Quaternion => quaternion_to_matrix(take(values)),
        RotationType::Rotation6d => rotation_6d_to_matrix(take(values)),
        RotationType::Matrix => {
            let [a, b, c, d, e, f, g, h, i] = take(values);
            [[a, b, c], [d, e, f], [g, h, i]]
        }
        RotationType::Euler(axes) => euler_to_matrix(take(values), axes),
    }
}

fn dot<T: Real>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Length, summed with fused multiply-adds as torch's norm does.
fn norm<T: Real>([x, y, z]: [T; 3]) -> T {
    z.mul_add(z, y.mul_add(y, x * x)).sqrt()
}

/// Cross product, each first product fused with the subtraction as in torch's.
fn cross<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    let entry = |i: usize, j: usize| a[i].mul_add(b[j], -(a[j] * b[i]));
    [entry(1, 2), entry(2, 0), entry(0, 1)]
}

fn normalized<T: Real>(v: [T; 3]) -> [T; 3] {
    let length = norm(v).max(num(NORMALIZE_FLOOR));
    v.map(|x| x / length)
}

fn matmul<T: Real>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    a.map(|row| std::array::from_fn(|j| dot(row, [b[0][j], b[1][j], b[2][j]])))
}

/// sin(θ/2) / θ.
fn sin_half_over<T: Real>(angle: T) -> T {
    if angle.abs() < num(SMALL_ANGLE) {
        num::<T>(0.5) - angle * angle / num(48.0)
    } else {
        (angle * num(0.5)).sin() / angle
    }
}

fn axis_angle_to_quaternion<T: Real>(v: [T; 3]) -> [T; 4] {
    let angle = norm(v);
    let [i, j, k] = v.map(|x| x * sin_half_over(angle));
    [(angle * num(0.5)).cos(), i, j, k]
}

fn quaternion_to_axis_angle<T: Real>([r, i, j, k]: [T; 4]) -> [T; 3] {
    let half = norm([i, j, k]).atan2(r);
    let scale = sin_half_over(num::<T>(2.0) * half);
    [i, j, k].map(|x| x / scale)
}

fn quaternion_to_matrix<T: Real>([r, i, j, k]: [T; 4]) -> Matrix<T> {
    let one: T = num(1.0);
    // Divided by |q|², so that a quaternion that isn't of unit length is read as if it were.
    let two_s = num::<T>(2.0) / (r * r + i * i + j * j + k * k);
    [
        [one - two_s * (j * j + k * k), two_s * (i * j - k * r), two_s * (i * k + j * r)],
        [two_s * (i * j + k * r), one - two_s * (i * i + k * k), two_s * (j * k - i * r)],
        [two_s * (i * k - j * r), two_s * (j * k + i * r), one - two_s * (i * i + j * j)],
    ]
}

fn matrix_to_quaternion<T: Real>(m: &Matrix<T>) -> [T; 4] {
    let one: T = num(1.0);
    let [[m00, m01, m02], [m10, m11, m12], [m20, m21, m22]] = *m;
    let root_of_positive = |x: T| if x > num(0.0) { x.sqrt() } else { num(0.0) };
    let q_abs = [
        root_of_positive(one + m00 + m11 + m22),
        root_of_positive(one + m00 - m11 - m22),
        root_of_positive(one - m00 + m11 - m22),
        root_of_positive(one - m00 - m11 + m22),
    ];
    // Four ways to write the same quaternion; the one with the largest denominator loses the fewest digits.
    let (mut best, mut largest) = (0, q_abs[0]);
    for (index, &q) in q_abs.iter().enumerate().skip(1) {
        if q > largest {
            (best, largest) = (index, q);
        }
    }
    let square = largest * largest;
    let candidate = match best {
        0 => [square, m21 - m12, m02 - m20, m10 - m01],
        1 => [m21 - m12, square, m10 + m01, m02 + m20],
        2 => [m02 - m20, m10 + m01, square, m12 + m21],
        _ => [m10 - m01, m20 + m02, m21 + m12, square],
    };
    let denominator = num::<T>(2.0) * largest.max(num(f64::from(QUATERNION_FLOOR)));
    let q = candidate.map(|x| x / denominator);
    if q[0] < num(0.0) { q.map(|x| -x) } else { q }
}

fn rotation_6d_to_matrix<T: Real>([a, b, c, d, e, f]: [T; 6]) -> Matrix<T> {
    let first = normalized([a, b, c]);
    let second = [d, e, f];
    let along = dot(first, second);
    let second = normalized(std::array::from_fn(|n| second[n] - along * first[n]));
    [first, second, cross(first, second)]
}

fn axis_rotation<T: Real>(axis: Axis, angle: T) -> Matrix<T> {
    let (sin, cos) = (angle.sin(), angle.cos());
    let [zero, one] = [0.0, 1.0].map(T::from_f64);
    match axis {
        Axis::X => [[one, zero, zero], [zero, cos, -sin], [zero, sin, cos]],
        Axis::Y => [[cos, zero, sin], [zero, one, zero], [-sin, zero, cos]],
        Axis::Z => [[cos, -sin, zero], [sin, cos, zero], [zero, zero, one]],
    }
}

fn euler_to_matrix<T: Real>(angles: [T; 3], axes: [Axis; 3]) -> Matrix<T> {
    let [first, second, third]: [Matrix<T>; 3] = std::array::from_fn(|n| axis_rotation(axes[n], angles[n]));
    matmul(&matmul(&first, &second), &third)
}

/// The angles about three different axes; the middle one in ±π/2, NaN if rounding left its sine beyond 1.
fn matrix_to_euler<T: Real>(m: &Matrix<T>, axes: [Axis; 3]) -> [T; 3] {
    let [a, b, c] = axes.map(Axis::index);
    // +1 where the three axes follow one another cyclically (XYZ, YZX, ZXY), else -1.
    let sign: T = num(if (a + 1) % 3 == b { 1.0 } else { -1.0 });
    let outer = (-sign * m[b][c]).atan2(m[c][c]);
    let inner = (-sign * m[a][b]).atan2(m[a][a]);
    [outer, (sign * m[a][c]).asin(), inner]
}
