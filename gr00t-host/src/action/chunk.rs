//! An action chunk: what the robot executes next.

/// Physical actions of `horizon` time steps, one group per action key, in the data config's order.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionChunk {
    /// Number of time steps.
    pub horizon: usize,
    /// The action groups.
    pub groups: Vec<ActionGroup>,
    /// Number of values that lay outside the range of the training data, before any clipping.
    pub out_of_range: usize,
}

/// One action key's values.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionGroup {
    /// Action key, without the `action.` prefix.
    pub key: String,
    /// Values per time step.
    pub dim: usize,
    /// `[horizon, dim]`, row-major, in the key's physical unit.
    pub values: Vec<f32>,
}

impl ActionChunk {
    /// The group of `key`.
    pub fn group(&self, key: &str) -> Option<&ActionGroup> {
        self.groups.iter().find(|g| g.key == key)
    }
}

impl ActionGroup {
    /// The values of time step `step`.
    ///
    /// # Panics
    /// If `step` is not below the horizon.
    pub fn step(&self, step: usize) -> &[f32] {
        &self.values[step * self.dim..(step + 1) * self.dim]
    }
}
