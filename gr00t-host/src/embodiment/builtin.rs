//! The built-in data configs: NVIDIA's twelve registered ones and the four classes of its examples, one embedded
//! TOML file each, with their other names.

use super::data_config::DataConfig;
use super::file;
use super::suggest::did_you_mean;
use crate::{Error, Result};

/// How a built-in config's values are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provenance {
    /// NVIDIA's own code was run on this config: keys, modes and rotations, and the numbers that come out, are tested
    /// against the results.
    NvidiaGolden,
    /// The values were read from NVIDIA's source; a test pins them, but no result of NVIDIA's code was at hand.
    TableOnly,
}

/// One built-in config.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// The name that NVIDIA's `--data-config` takes for a class outside its registry.
    module_class: Option<&'static str>,
    provenance: Provenance,
    toml: &'static str,
}

macro_rules! registered {
    ($name:literal, $provenance:ident) => {
        Builtin {
            name: $name,
            module_class: None,
            provenance: Provenance::$provenance,
            toml: include_str!(concat!("../../assets/data_configs/", $name, ".toml")),
        }
    };
}

macro_rules! example {
    ($name:literal, $module_class:literal) => {
        Builtin {
            name: $name,
            module_class: Some($module_class),
            provenance: Provenance::TableOnly,
            toml: include_str!(concat!("../../assets/data_configs/", $name, ".toml")),
        }
    };
}

pub(super) const BUILTINS: [Builtin; 16] = [
    registered!("fourier_gr1_arms_waist", TableOnly),
    registered!("fourier_gr1_arms_only", NvidiaGolden),
    registered!("fourier_gr1_full_upper_body", NvidiaGolden),
    registered!("bimanual_panda_gripper", NvidiaGolden),
    registered!("bimanual_panda_hand", TableOnly),
    registered!("single_panda_gripper", TableOnly),
    registered!("so100", NvidiaGolden),
    registered!("so100_dualcam", TableOnly),
    registered!("unitree_g1", NvidiaGolden),
    registered!("unitree_g1_full_body", TableOnly),
    registered!("oxe_droid", NvidiaGolden),
    registered!("agibot_genie1", TableOnly),
    example!("libero", "examples.Libero.custom_data_config:LiberoDataConfig"),
    example!("libero_mean_std", "examples.Libero.custom_data_config:LiberoDataConfigMeanStd"),
    example!("simpler_fractal", "examples.SimplerEnv.custom_data_config:FractalDataConfig"),
    example!("simpler_bridge", "examples.SimplerEnv.custom_data_config:BridgeDataConfig"),
];

fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|b| b.name == name || b.module_class == Some(name))
}

pub(super) fn load(name: &str) -> Result<DataConfig> {
    let Some(builtin) = find(name) else {
        let known = || BUILTINS.iter().map(|b| b.name);
        let hint = did_you_mean(name, known());
        let python = if name.contains(':') {
            "; python classes can't be loaded, write the config as a .toml file"
        } else {
            ""
        };
        let what = format!("unknown{hint}, built in: {}{python}", known().collect::<Vec<_>>().join(", "));
        return Err(Error::DataConfig { name: name.to_owned(), what });
    };
    file::parse(builtin.name, builtin.toml)
}

/// How the values of the built-in config `name` are known; `None` if there is no such config.
pub fn provenance(name: &str) -> Option<Provenance> {
    find(name).map(|b| b.provenance)
}
