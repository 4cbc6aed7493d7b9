//! What binds a model to a robot, as commands ask for it: data config, statistics, horizon.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gr00t_host::ModelConfig;
use gr00t_host::action::ActionOptions;
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata, synthetic_metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::observation::ObservationFile;

use crate::weights::Loaded;

/// Options of every command that encodes observations.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RobotArgs {
    /// Statistics in the form of a checkpoint's experiment_cfg/metadata.json
    #[arg(long, value_name = "FILE")]
    pub(crate) metadata: Option<PathBuf>,
    /// Data config by name, or a TOML file; an observation file's own by default
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) data_config: Option<String>,
}

/// A model's two ends for one robot.
#[derive(Debug)]
pub(crate) struct Robot {
    /// Sizes, with the data config's horizon.
    pub(crate) config: ModelConfig,
    /// Cameras, state keys, action keys.
    pub(crate) data_config: DataConfig,
    /// Statistics.
    pub(crate) metadata: Metadata,
    /// Where the statistics came from.
    pub(crate) metadata_from: String,
    /// Observation → model inputs.
    pub(crate) encoder: Encoder,
    /// Model output → actions.
    pub(crate) decoder: Decoder,
    /// What a person should know of the binding.
    pub(crate) warning: Option<String>,
}

impl Robot {
    /// The robot of an observation file: its data config and statistics, where `args` and the checkpoint have none.
    ///
    /// # Errors
    /// If weights, statistics and data config cannot be had or do not fit together.
    pub(crate) fn of_observation(
        args: &RobotArgs,
        loaded: &Loaded,
        file: &ObservationFile,
        options: EncoderOptions,
    ) -> Result<Self> {
        let data_config = match &args.data_config {
            Some(name) => DataConfig::load(name)?,
            None => file
                .data_config()?
                .context("the observation names no data_config, and --data-config is not given")?,
        };
        let own = || {
            let Some(name) = &file.metadata else { return Ok(None) };
            let path = file.resolve(name);
            let from = format!("the observation's ({})", path.display());
            Ok(Some((Metadata::from_file(&path)?, from)))
        };
        Self::bind(args, loaded, data_config, own, options)
    }

    /// Binds `loaded` to `data_config`. Statistics are those asked for; else the checkpoint's, which it was trained with; else the
    /// data's `own`; else, for synthetic weights alone, the made-up ones.
    ///
    /// # Errors
    /// If there are no statistics, or what there is does not fit together.
    pub(crate) fn bind(
        args: &RobotArgs,
        loaded: &Loaded,
        data_config: DataConfig,
        own: impl FnOnce() -> Result<Option<(Metadata, String)>>,
        options: EncoderOptions,
    ) -> Result<Self> {
        let (metadata, metadata_from) = match (&args.metadata, &loaded.metadata) {
            (Some(path), _) => (Metadata::from_file(path)?, path.display().to_string()),
            (None, Some(metadata)) if !loaded.is_synthetic => (metadata.clone(), "the checkpoint's".into()),
            _ => match own()? {
                Some(own) => own,
                None if loaded.is_synthetic => {
                    (synthetic_metadata(&data_config)?, "made up, for synthetic weights".into())
                }
                None => bail!(
                    "{} has no experiment_cfg/metadata.json: give statistics with --metadata",
                    loaded.description
                ),
            },
        };
        // Upstream rebuilds its head for another horizon, and no weight depends on it.
        let (own, wanted) = (loaded.config.gr00t.action_horizon, data_config.action_horizon);
        let mut config = loaded.config.clone();
        let mut warning = None;
        if own != wanted {
            config = config.with_action_horizon(wanted).context("the data config's action_horizon")?;
            warning = Some(format!(
                "the data config's action_horizon {wanted} takes the place of the checkpoint's {own}"
            ));
        }
        let tokenizer = Arc::clone(&loaded.tokenizer);
        let encoder = Encoder::new(&config, &data_config, &metadata, tokenizer, options)?;
        let decoder = Decoder::new(&config, &data_config, &metadata, ActionOptions::default())?;
        Ok(Self { config, data_config, metadata, metadata_from, encoder, decoder, warning })
    }
}
