//! From a robot's state to the state vector that the model reads; source: NVIDIA's `StateActionTransform`,
//! `StateActionSinCosTransform`, `ConcatTransform` and `GR00TTransform` (GR00T N1.5).

use std::collections::BTreeMap;

use super::key::{KeyTransform, Side};
use super::real::Real;
use crate::embodiment::suggest::did_you_mean;
use crate::embodiment::{DataConfig, EmbodimentMetadata};
use crate::observation::Values;
use crate::{Error, Result};

/// What to do with a state key that neither the data config nor the metadata knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownKeys {
    /// Refuse the observation.
    #[default]
    Error,
    /// Ignore the key, with a warning.
    Warn,
}

/// The state vector and what was noticed on the way.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StateVector {
    /// Normalised values in the data config's order, then zeros up to the model's width; rounded to f32.
    pub values: Vec<f32>,
    /// The same without the zeros, unrounded: f64 if any key came in f64, else f32. Each key is normalised in its own
    /// precision, as upstream, whose concatenation then widens.
    pub exact: Values,
    /// One line each: values far outside the statistics, keys that were ignored.
    pub warnings: Vec<String>,
}

impl StateVector {
    /// Number of values that are state and not padding; upstream's state mask is true on these.
    pub fn dim(&self) -> usize {
        self.exact.len()
    }
}

/// The state side of a data config, bound to an embodiment's metadata.
#[derive(Debug, Clone)]
pub struct StateTransform {
    keys: Vec<KeyTransform>,
    /// Keys that the metadata has and the data config doesn't use.
    unused: Vec<String>,
    max_state_dim: usize,
}

impl StateTransform {
    /// Binds `config` to `metadata` for a model with `max_state_dim` inputs (64 in N1.5).
    ///
    /// # Errors
    /// [`Error::DataConfig`] listing everything that doesn't fit: keys that the metadata lacks, statistics that are
    /// missing, not finite or of another length, modes that a key can't have, more than `max_state_dim` dimensions (which
    /// upstream would cut off in silence).
    pub fn new(config: &DataConfig, metadata: &EmbodimentMetadata, max_state_dim: usize) -> Result<Self> {
        let mut problems = Vec::new();
        let keys =
            KeyTransform::bind_all(Side::State, &config.state_keys, metadata, max_state_dim, &mut problems);
        if !problems.is_empty() {
            return Err(Error::DataConfig { name: config.name.clone(), what: problems.join("; ") });
        }
        let used = |name: &&String| !keys.iter().any(|k| k.key() == name.as_str());
        let unused = metadata.modalities.state.keys().filter(used).cloned().collect();
        Ok(Self { keys, unused, max_state_dim })
    }

    /// The keys, in the order of the state vector.
    pub fn keys(&self) -> &[KeyTransform] {
        &self.keys
    }

    /// Normalises one time step, refusing unknown keys.
    ///
    /// # Errors
    /// [`Error::Observation`] listing every missing, unknown, wrongly sized or non-finite key.
    pub fn apply(&self, state: &BTreeMap<String, Values>) -> Result<StateVector> {
        self.apply_with(state, UnknownKeys::Error)
    }

    /// Normalises one time step. Keys that the metadata knows and the data config doesn't use are ignored with a warning.
    ///
    /// # Errors
    /// [`Error::Observation`] listing every missing, wrongly sized or non-finite key, and unknown ones if `unknown` says so.
    pub fn apply_with(&self, state: &BTreeMap<String, Values>, unknown: UnknownKeys) -> Result<StateVector> {
        let mut problems = Vec::new();
        let mut warnings = Vec::new();
        for key in &self.keys {
            match state.get(key.key()) {
                None => problems.push(self.missing(key, state)),
                Some(values) => problems.extend(check_values(key, values)),
            }
        }
        for name in state.keys().filter(|name| !self.keys.iter().any(|k| k.key() == name.as_str())) {
            if self.unused.contains(name) {
                warnings.push(format!("state {name} is not used by the data config, ignored"));
                continue;
            }
            let hint = did_you_mean(name, self.keys.iter().map(KeyTransform::key));
            match unknown {
                UnknownKeys::Error => problems.push(format!("state {name} is unknown{hint}")),
                UnknownKeys::Warn => warnings.push(format!("state {name} is unknown{hint}, ignored")),
            }
        }
        if !problems.is_empty() {
            return Err(Error::Observation(problems));
        }
        self.normalize(state, warnings)
    }

    fn missing(&self, key: &KeyTransform, state: &BTreeMap<String, Values>) -> String {
        let strangers =
            state.keys().map(String::as_str).filter(|name| !self.keys.iter().any(|k| k.key() == *name));
        let hint = did_you_mean(key.key(), strangers).replace("did you mean", "is it").replace('?', "");
        format!("state {} is missing, wanted {} values{hint}", key.key(), key.dim())
    }

    fn normalize(&self, state: &BTreeMap<String, Values>, mut warnings: Vec<String>) -> Result<StateVector> {
        let mut problems = Vec::new();
        let mut single = Vec::new();
        let mut double = Vec::new();
        let mut all_single = true;
        for (key, values) in self.keys.iter().filter_map(|k| state.get(k.key()).map(|v| (k, v))) {
            warnings.extend(key.ranges().and_then(|r| r.warning(key.key(), &values.to_f64())));
            let start = double.len();
            match values {
                Values::F32(v) => {
                    let out = forward(key, v);
                    double.extend(out.iter().map(|&x| f64::from(x)));
                    single.extend(out);
                }
                Values::F64(v) => {
                    let out = forward(key, v);
                    single.extend(out.iter().map(|&x| x as f32));
                    double.extend(out);
                    all_single = false;
                }
            }
            if !single.iter().skip(start).all(|x| x.is_finite()) {
                problems.push(format!(
                    "state {} has no finite normalised value (for a rotation: not one)",
                    key.key()
                ));
            }
        }
        if !problems.is_empty() {
            return Err(Error::Observation(problems));
        }
        let mut padded = single.clone();
        padded.resize(self.max_state_dim, 0.0);
        let exact = if all_single { Values::F32(single) } else { Values::F64(double) };
        Ok(StateVector { values: padded, exact, warnings })
    }
}

fn forward<T: Real>(key: &KeyTransform, values: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(key.model_dim());
    key.forward(values, &mut out);
    out
}

fn check_values(key: &KeyTransform, values: &Values) -> Option<String> {
    let name = key.key();
    if values.len() != key.dim() {
        return Some(format!("state {name} has {} values, wanted {}", values.len(), key.dim()));
    }
    let (index, value) = values.to_f64().into_iter().enumerate().find(|(_, v)| !v.is_finite())?;
    Some(format!("state {name}[{index}] is {value}, wanted a finite number"))
}
