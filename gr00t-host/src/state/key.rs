//! One state or action key, ready to run: a data config's [`KeySpec`] bound to the embodiment's metadata.
//! The rules are those of NVIDIA's `StateActionTransform.set_metadata` and `ConcatTransform` (GR00T N1.5).

use std::collections::BTreeMap;
use std::f64::consts::PI;

use super::normalize::{Normalizer, Param};
use super::outlier::Ranges;
use super::real::Real;
use super::rotation;
use crate::embodiment::suggest::did_you_mean;
use crate::embodiment::{
    EmbodimentMetadata, KeyModality, KeySpec, KeyStatistics, NormalizationMode, RotationType,
};

/// Most values of one key; the model takes 64 states and 32 actions in all.
const MAX_KEY_DIM: usize = 1024;

/// Which side of the model a key is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    State,
    Action,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Action => "action",
        }
    }
}

/// Rotation and normalisation of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyTransform {
    key: String,
    dim: usize,
    model_dim: usize,
    /// From the robot's representation to the model's, where they differ.
    rotation: Option<(RotationType, RotationType)>,
    normalizer: Normalizer,
    ranges: Option<Ranges>,
}

impl KeyTransform {
    /// The key, without its modality's prefix.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Values that the robot sends or receives.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Values that the model sees.
    pub fn model_dim(&self) -> usize {
        self.model_dim
    }

    /// The normalisation.
    pub fn mode(&self) -> NormalizationMode {
        self.normalizer.mode()
    }

    /// The statistics' ranges of the robot's values, where each value has one.
    pub(crate) fn ranges(&self) -> Option<&Ranges> {
        self.ranges.as_ref()
    }

    /// Whether un-normalising gives the same values whatever the model says.
    pub fn is_constant(&self) -> bool {
        let ranged = matches!(self.mode(), NormalizationMode::MinMax | NormalizationMode::Q99);
        let constant = |p: &Param| if ranged { p.a == p.b } else { p.b == 0.0 };
        (ranged || self.mode() == NormalizationMode::MeanStd)
            && self.rotation.is_none()
            && self.normalizer.params().iter().all(constant)
    }

    /// Appends the model's values for the robot's `values` ([`dim`](Self::dim) of them).
    pub fn forward<T: Real>(&self, values: &[T], out: &mut Vec<T>) {
        match self.rotation {
            None => self.normalizer.forward(values, out),
            Some((from, to)) => {
                let mut rotated = Vec::with_capacity(self.model_dim);
                rotation::convert(from, to, values, &mut rotated);
                self.normalizer.forward(&rotated, out);
            }
        }
    }

    /// Appends the robot's values for the model's `values` ([`model_dim`](Self::model_dim) of them).
    pub fn inverse<T: Real>(&self, values: &[T], out: &mut Vec<T>) {
        let mut plain = values.to_vec();
        self.normalizer.inverse(&mut plain);
        match self.rotation {
            None => out.extend(plain),
            Some((from, to)) => rotation::convert(to, from, &plain, out),
        }
    }

    /// Binds all keys of one side to the metadata; what doesn't fit is added to `problems`, everything at once.
    pub(crate) fn bind_all(
        side: Side,
        specs: &[KeySpec],
        metadata: &EmbodimentMetadata,
        max_dim: usize,
        problems: &mut Vec<String>,
    ) -> Vec<Self> {
        let (modalities, statistics) = match side {
            Side::State => (&metadata.modalities.state, &metadata.statistics.state),
            Side::Action => (&metadata.modalities.action, &metadata.statistics.action),
        };
        let known = problems.len();
        let mut keys = Vec::with_capacity(specs.len());
        for spec in specs {
            match bind(side, spec, modalities, statistics) {
                Ok(key) => keys.push(key),
                Err(what) => problems.push(format!("{} {}: {what}", side.name(), spec.key)),
            }
        }
        if problems.len() == known {
            let total: usize = keys.iter().map(|key| key.model_dim).sum();
            if total > max_dim {
                problems.push(format!("{} has {total} dimensions, the model takes {max_dim}", side.name()));
            }
        }
        keys
    }
}

fn bind(
    side: Side,
    spec: &KeySpec,
    modalities: &BTreeMap<String, KeyModality>,
    statistics: &BTreeMap<String, KeyStatistics>,
) -> Result<KeyTransform, String> {
    let names = || modalities.keys().map(String::as_str);
    let modality = modalities.get(&spec.key).ok_or_else(|| {
        let hint = did_you_mean(&spec.key, names());
        format!("not in the metadata{hint}, which has {}", names().collect::<Vec<_>>().join(", "))
    })?;
    let dim = match modality.shape.as_slice() {
        [dim] if (1..=MAX_KEY_DIM).contains(dim) => *dim,
        other => return Err(format!("metadata shape {other:?}, wanted one dimension of 1 to {MAX_KEY_DIM}")),
    };
    let rotation = bind_rotation(spec, modality, dim)?;
    let (mode, rotated) = (spec.mode, rotation.is_some());
    check_mode(side, mode, modality, rotated)?;

    let stats = statistics.get(&spec.key);
    if let Some(stats) = stats {
        check_lengths(stats, dim)?;
    } else if mode.needs_statistics() {
        return Err(format!("no statistics in the metadata, mode {mode} needs them"));
    }
    let width = rotation.map_or(dim, |(_, to)| to.dim());
    let params = match (rotation, stats) {
        (Some((_, to)), _) if mode == NormalizationMode::MinMax => fixed_bounds(to)?,
        (None, Some(stats)) => params(mode, stats)?,
        _ => vec![Param { a: 0.0, b: 0.0 }; width],
    };
    let model_dim = if mode == NormalizationMode::SinCos { 2 * dim } else { width };
    // Upstream's concatenation accepts no other widths.
    let fits = match side {
        Side::State => {
            mode == NormalizationMode::SinCos || width == dim || width == RotationType::Rotation6d.dim()
        }
        Side::Action => width == dim,
    };
    if !fits {
        let wanted = if side == Side::State { " or 6" } else { "" };
        return Err(format!("{width} values after its rotation, wanted {dim}{wanted}"));
    }
    let independent = modality.rotation_type.is_none_or(RotationType::has_independent_values);
    let ranges = stats.filter(|_| independent).and_then(|s| Ranges::new(&s.min, &s.max));
    Ok(KeyTransform {
        key: spec.key.clone(),
        dim,
        model_dim,
        rotation,
        normalizer: Normalizer::new(mode, params),
        ranges,
    })
}

fn bind_rotation(
    spec: &KeySpec,
    modality: &KeyModality,
    dim: usize,
) -> Result<Option<(RotationType, RotationType)>, String> {
    if let Some(from) = modality.rotation_type
        && from.dim() != dim
    {
        return Err(format!("metadata says {from} with {dim} values, wanted {}", from.dim()));
    }
    let Some(to) = spec.rotation else { return Ok(None) };
    let from = modality
        .rotation_type
        .ok_or_else(|| format!("to be rotated to {to}, but the metadata has no rotation_type"))?;
    Ok((from != to).then_some((from, to)))
}

fn check_mode(
    side: Side,
    mode: NormalizationMode,
    modality: &KeyModality,
    rotated: bool,
) -> Result<(), String> {
    if side == Side::Action && !mode.is_invertible() {
        return Err(format!("mode {mode} has no inverse, which actions need"));
    }
    if mode == NormalizationMode::None {
        return Ok(());
    }
    if rotated && !modality.absolute {
        return Err(format!("mode {mode} on a relative rotation, whose bounds aren't known; wanted none"));
    }
    if rotated && mode != NormalizationMode::MinMax {
        return Err(format!("mode {mode} on a converted rotation, wanted min_max or none"));
    }
    if !rotated && !modality.continuous && mode.needs_statistics() && mode != NormalizationMode::Binary {
        return Err(format!("mode {mode} on a key that isn't continuous, wanted binary"));
    }
    Ok(())
}

fn check_lengths(stats: &KeyStatistics, dim: usize) -> Result<(), String> {
    let KeyStatistics { max, min, mean, std, q01, q99 } = stats;
    let named = [("max", max), ("min", min), ("mean", mean), ("std", std), ("q01", q01), ("q99", q99)];
    match named.iter().find(|(_, values)| values.len() != dim) {
        Some((name, values)) => {
            Err(format!("statistics {name} has {} values, its shape says {dim}", values.len()))
        }
        None => Ok(()),
    }
}

fn params(mode: NormalizationMode, stats: &KeyStatistics) -> Result<Vec<Param>, String> {
    let (a, b, names) = match mode {
        NormalizationMode::MinMax | NormalizationMode::Scale => (&stats.min, &stats.max, ("min", "max")),
        NormalizationMode::Q99 => (&stats.q01, &stats.q99, ("q01", "q99")),
        NormalizationMode::MeanStd => (&stats.mean, &stats.std, ("mean", "std")),
        NormalizationMode::None | NormalizationMode::Binary | NormalizationMode::SinCos => {
            return Ok(vec![Param { a: 0.0, b: 0.0 }; stats.min.len()]);
        }
    };
    for (name, values) in [(names.0, a), (names.1, b)] {
        if let Some((index, value)) = values.iter().enumerate().find(|(_, v)| !(**v as f32).is_finite()) {
            return Err(format!("statistics {name}[{index}] is {value}, mode {mode} needs finite ones"));
        }
    }
    Ok(a.iter().zip(b).map(|(&a, &b)| Param { a, b }).collect())
}

/// Bounds of a converted rotation, which its statistics (of the original representation) don't tell. Upstream keeps them
/// in single precision.
fn fixed_bounds(to: RotationType) -> Result<Vec<Param>, String> {
    let bound = match to {
        RotationType::Rotation6d | RotationType::Quaternion => 1.0,
        RotationType::Euler(_) | RotationType::AxisAngle => f64::from(PI as f32),
        RotationType::Matrix => return Err("a rotation converted to matrix has no min_max bounds".to_owned()),
    };
    Ok(vec![Param { a: -bound, b: bound }; to.dim()])
}
