//! Representations of a rotation; source: NVIDIA's `RotationType` (GR00T N1.5, `gr00t/data/schema.py`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of the three axes that an Euler angle turns about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Roll.
    X,
    /// Pitch.
    Y,
    /// Yaw.
    Z,
}

impl Axis {
    /// 0, 1, 2.
    pub fn index(self) -> usize {
        self as usize
    }

    fn letter(self) -> char {
        match self {
            Self::X => 'r',
            Self::Y => 'p',
            Self::Z => 'y',
        }
    }
}

/// How a key's values write a rotation down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum RotationType {
    /// Axis times angle in radians, 3 values.
    AxisAngle,
    /// Real part first: w, x, y, z; 4 values. Simulators that put it last (robosuite) must reorder: nothing here can tell.
    Quaternion,
    /// The first two rows of the matrix, 6 values.
    Rotation6d,
    /// The whole matrix, row-major, 9 values.
    Matrix,
    /// Intrinsic angles in radians about three different axes, in the order of their letters (r, p, y); 3 values.
    Euler([Axis; 3]),
}

impl RotationType {
    /// Number of values.
    pub fn dim(self) -> usize {
        match self {
            Self::AxisAngle | Self::Euler(_) => 3,
            Self::Quaternion => 4,
            Self::Rotation6d => 6,
            Self::Matrix => 9,
        }
    }

    /// Whether each value alone has a meaning, so that a range per value makes sense.
    pub(crate) fn has_independent_values(self) -> bool {
        matches!(self, Self::AxisAngle | Self::Euler(_))
    }
}

impl fmt::Display for RotationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AxisAngle => f.write_str("axis_angle"),
            Self::Quaternion => f.write_str("quaternion"),
            Self::Rotation6d => f.write_str("rotation_6d"),
            Self::Matrix => f.write_str("matrix"),
            Self::Euler([a, b, c]) => write!(f, "euler_angles_{}{}{}", a.letter(), b.letter(), c.letter()),
        }
    }
}

impl FromStr for RotationType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        use Axis::{X, Y, Z};
        Ok(match name {
            "axis_angle" => Self::AxisAngle,
            "quaternion" => Self::Quaternion,
            "rotation_6d" => Self::Rotation6d,
            "matrix" => Self::Matrix,
            "euler_angles_rpy" => Self::Euler([X, Y, Z]),
            "euler_angles_ryp" => Self::Euler([X, Z, Y]),
            "euler_angles_pry" => Self::Euler([Y, X, Z]),
            "euler_angles_pyr" => Self::Euler([Y, Z, X]),
            "euler_angles_yrp" => Self::Euler([Z, X, Y]),
            "euler_angles_ypr" => Self::Euler([Z, Y, X]),
            other => {
                return Err(format!(
                    "unknown rotation type {other:?}, known: axis_angle, quaternion, rotation_6d, matrix, euler_angles_rpy \
                     (letters in any order)"
                ));
            }
        })
    }
}

impl TryFrom<String> for RotationType {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<RotationType> for String {
    fn from(rotation: RotationType) -> Self {
        rotation.to_string()
    }
}
