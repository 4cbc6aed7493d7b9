//! Options that depend on each other.

use gr00t_host::checkpoint::{GR00T_N1_5_3B, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, EmbodimentTag};
use gr00t_host::{Error, Result};

use super::ServeOptions;

/// The embodiment that is served where nothing is said.
const DEFAULT_EMBODIMENT: &str = "gr1";
/// Its data config: the one that the Python server served. Several data configs have this embodiment.
const DEFAULT_DATA_CONFIG: &str = "fourier_gr1_arms_only";

impl ServeOptions {
    /// The weights: those asked for, else NVIDIA's.
    ///
    /// # Errors
    /// If they have no form that weights can have.
    pub fn weights_spec(&self) -> Result<WeightsSpec> {
        self.weights.as_deref().unwrap_or(GR00T_N1_5_3B).parse()
    }

    /// What is wrong, if two servers have the same port.
    pub(super) fn port_clash(&self) -> Option<String> {
        let protocols = &self.protocols;
        let ports = [
            ("--port", Some(self.port)),
            ("--zmq-port", protocols.zmq_port),
            ("--websocket-port", protocols.websocket_port),
        ];
        // 0 is any that is free
        let given = ports.map(|(flag, port)| (flag, port.filter(|port| *port != 0)));
        given.iter().enumerate().find_map(|(at, (flag, port))| {
            let (other, _) = given.iter().take(at).find(|(_, taken)| port.is_some() && taken == port)?;
            Some(format!("{flag}: {} is the port of {other} already", (*port)?))
        })
    }

    /// The data config: the one asked for, else the embodiment's first.
    ///
    /// # Errors
    /// If there is none, or the embodiment asked for is not the data config's.
    pub fn data_config(&self) -> Result<DataConfig> {
        let tag = |name: &str| {
            let Ok(tag) = name.parse::<EmbodimentTag>();
            tag
        };
        let Some(name) = &self.data_config else {
            let wanted = self.embodiment.as_deref().unwrap_or(DEFAULT_EMBODIMENT);
            return embodiments_first(&tag(wanted));
        };
        let config = DataConfig::load(name)?;
        match self.embodiment.as_deref().map(tag) {
            Some(wanted) if wanted != config.embodiment => Err(Error::DataConfig {
                name: config.name,
                what: format!("embodiment {}, but {wanted} was asked for", config.embodiment),
            }),
            _ => Ok(config),
        }
    }
}

fn embodiments_first(wanted: &EmbodimentTag) -> Result<DataConfig> {
    for name in std::iter::once(DEFAULT_DATA_CONFIG).chain(DataConfig::builtin_names()) {
        let config = DataConfig::builtin(name)?;
        if config.embodiment == *wanted {
            return Ok(config);
        }
    }
    Err(Error::Metadata(format!(
        "embodiment {wanted} has no built-in data config; give one with --data-config"
    )))
}
