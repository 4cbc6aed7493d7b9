//! Embodiments: [tags](EmbodimentTag) and projector slots, [metadata](Metadata) (statistics and modalities),
//! [data configs](DataConfig) built in or from TOML, and written-down [synthetic metadata](synthetic_metadata).

mod builtin;
mod data_config;
mod file;
mod metadata;
mod mode;
mod rotation_type;
pub(crate) mod suggest;
mod synthetic;
mod tag;

pub use builtin::{Provenance, provenance};
pub use data_config::{DEFAULT_ACTION_HORIZON, DataConfig, KeySpec};
pub use file::MAX_BYTES as MAX_DATA_CONFIG_BYTES;
pub use metadata::{
    EmbodimentMetadata, KeyModality, KeyStatistics, MAX_METADATA_BYTES, Metadata, Modalities, Statistics,
    VideoModality,
};
pub use mode::NormalizationMode;
pub use rotation_type::{Axis, RotationType};
pub use synthetic::synthetic_metadata;
pub use tag::EmbodimentTag;
