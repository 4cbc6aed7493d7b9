//! Observation → model inputs.

/// What the model reads, for one observation.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInputs {
    /// Normalised pixels `[views, channels, image_size, image_size]`, row-major.
    pub pixel_values: Vec<f32>,
    /// Number of camera views.
    pub views: usize,
    /// Token ids `[S]`, image tokens in place.
    pub input_ids: Vec<u32>,
    /// Normalised state, zero-padded to `max_state_dim`.
    pub state: Vec<f32>,
    /// Initial noise of the flow `[action_horizon, action_dim]`, row-major.
    pub noise: Vec<f32>,
    /// Slot of the category-specific weights.
    pub embodiment_id: usize,
}
