//! What a robot sends: camera frames, joint state and an instruction.

mod file;

use std::collections::BTreeMap;

use crate::image::Frame;

pub use file::{Expected, ObservationFile, Row, StateDtype};

/// One time step of one robot. Keys are without the `video.` / `state.` prefix.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// Camera name → frame.
    pub images: BTreeMap<String, Frame>,
    /// State key → one row of values.
    pub state: BTreeMap<String, Values>,
    /// Task text; `None` is upstream's default, "Perform the default behavior."
    pub instruction: Option<String>,
}

/// A row of numbers in the precision that the robot recorded them in; normalisation is done in the same one.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every value as f32, rounded to nearest.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Self::F32(v) => v.clone(),
            Self::F64(v) => v.iter().map(|&x| x as f32).collect(),
        }
    }

    /// Every value as f64, exactly.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::F64(v) => v.clone(),
        }
    }
}
