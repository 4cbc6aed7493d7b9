//! Where weights come from: a [`TensorSource`] (safetensors files or the procedural generator) read by dotted
//! path through [`Weights`]; [`Checkpoint`] finds, opens, recognises and checks one.

mod check;
mod hub;
mod integrity;
mod inventory;
mod json_map;
mod kind;
mod open;
mod plan;
pub mod procedural;
mod renamed;
mod safetensors;
mod shards;
mod source;
mod spec;
mod synth;
mod validate;
mod weight_files;
mod weights;

pub use check::{CheckReport, check_finite};
pub use hub::{DownloadProgress, Hub};
pub use inventory::{PartSize, inventory};
pub use open::{CONFIG_FILE, Checkpoint, EAGLE_CONFIG_FILE, METADATA_FILE, OpenOptions, TOKENIZER_FILE};
pub use plan::{ExpectedTensor, Part, expected_tensors};
pub use procedural::Procedural;
pub use safetensors::SafetensorsFile;
pub use shards::ShardedSafetensors;
pub use source::{StoredDtype, TensorInfo, TensorSource};
pub use spec::{DEFAULT_SYNTHETIC_SEED, GR00T_N1_5_3B, HubRepo, WeightsSpec};
pub use synth::write_synthetic;
pub use validate::{Validation, validate};
pub use weight_files::WeightFile;
pub use weights::Weights;
