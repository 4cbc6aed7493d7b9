//! What the served policy reads and writes.

use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::encode::Encoder;

/// The served robot: its cameras, keys and sizes, in the model's order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Robot {
    /// The data config.
    pub data_config: DataConfig,
    /// Statistics and modalities.
    pub metadata: Metadata,
    /// Cameras, in prompt order.
    pub cameras: Vec<Camera>,
    /// State keys, in the order of the state vector.
    pub state: Vec<Key>,
    /// Action keys, in the order of the action vector.
    pub actions: Vec<Key>,
    /// Time steps of a chunk.
    pub horizon: usize,
    /// Values of one time step of the model's output and noise, padding included.
    pub action_dim: usize,
    /// Outputs of the model per time step that are actions, as the model represents them.
    pub action_width: usize,
    /// Slot of the category-specific weights.
    pub embodiment_id: usize,
}

/// One camera.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Camera {
    /// Name, without the `video.` prefix.
    pub key: String,
    /// Width and height in the training data.
    pub resolution: Option<(usize, usize)>,
}

/// One state or action key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Name, without its prefix.
    pub key: String,
    /// Values per time step.
    pub dim: usize,
    /// How the values are normalised.
    pub mode: String,
}

impl Robot {
    pub(crate) fn new(
        data_config: DataConfig,
        metadata: Metadata,
        encoder: &Encoder,
        decoder: &Decoder,
    ) -> Self {
        let video = metadata.embodiment(&data_config.embodiment).map(|(known, _)| &known.modalities.video);
        let cameras = encoder
            .view_keys()
            .map(|key| Camera {
                key: key.to_owned(),
                resolution: video
                    .as_ref()
                    .ok()
                    .and_then(|video| video.get(key))
                    .map(|v| (v.resolution[0] as usize, v.resolution[1] as usize)),
            })
            .collect();
        let keys = |keys: &[gr00t_host::state::KeyTransform]| {
            keys.iter()
                .map(|k| Key { key: k.key().to_owned(), dim: k.dim(), mode: k.mode().to_string() })
                .collect()
        };
        Self {
            cameras,
            state: keys(encoder.state().keys()),
            actions: keys(decoder.action().keys()),
            horizon: decoder.horizon(),
            action_dim: decoder.action_dim(),
            action_width: decoder.action().dim(),
            embodiment_id: encoder.embodiment_id(),
            data_config,
            metadata,
        }
    }
}
