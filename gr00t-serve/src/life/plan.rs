//! Everything that can be wrong without a device, found before one is opened.

use std::sync::Arc;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;
use gr00t_host::action::ActionOptions;
use gr00t_host::checkpoint::{Checkpoint, DownloadProgress, OpenOptions, WeightsSpec};
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata, synthetic_metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::image::ResolutionPolicy;
use gr00t_host::noise::Noise;
use gr00t_host::prompt::Tokenizer;
use gr00t_host::state::UnknownKeys;
use gr00t_model::PackedCache;
use gr00t_model::tt_ops::metal::MetalOptions;
use gr00t_model::tt_ops::{Metal, Soft};
use tracing::{info, warn};

use crate::demo;
use crate::options::ServeOptions;
use crate::service::{Robot, Rules};

/// The cache folder that is none.
const NO_CACHE: &str = "off";

/// Weights, data config, statistics and tokenizer that fit together.
#[derive(Debug)]
pub struct Plan {
    pub(super) options: ServeOptions,
    pub(super) spec: WeightsSpec,
    pub(super) checkpoint: Checkpoint,
    pub(super) config: ModelConfig,
    pub(super) data_config: DataConfig,
    pub(super) metadata: Metadata,
    pub(super) tokenizer: Arc<Tokenizer>,
}

impl Plan {
    /// Opens and checks; reads headers, no weights. Where weights are downloaded, `downloading` hears of it.
    ///
    /// # Errors
    /// The first thing that is not there, does not parse or does not fit.
    pub fn new(options: &ServeOptions, downloading: DownloadProgress<'_>) -> Result<Self> {
        let spec = options.weights_spec()?;
        let data_config = options.data_config()?;
        let checkpoint = open(options, &spec, downloading)?;
        checkpoint.validate()?;
        let metadata = match (&options.metadata, checkpoint.metadata_path(), &spec) {
            (Some(file), ..) => Metadata::from_file(file)?,
            (None, Some(file), _) => Metadata::from_file(file)?,
            (None, None, WeightsSpec::Synthetic { .. }) => synthetic_metadata(&data_config)?,
            (None, None, _) => {
                anyhow::bail!("{spec} has no experiment_cfg/metadata.json: give statistics with --metadata")
            }
        };
        let tokenizer = Arc::new(match (&options.tokenizer, checkpoint.dir()) {
            // asked for, so that the built-in one would not do
            (Some(folder), _) => Tokenizer::from_file(folder.join("tokenizer.json"))?,
            (None, Some(folder)) => Tokenizer::for_folder(folder)?,
            (None, None) => Tokenizer::qwen2(),
        });
        let config = checkpoint.config().clone().with_action_horizon(data_config.action_horizon)?;
        let plan =
            Self { options: options.clone(), spec, checkpoint, config, data_config, metadata, tokenizer };
        if let Ok((known, _)) = plan.metadata.embodiment(&plan.data_config.embodiment) {
            for range in known.reversed_ranges() {
                warn!("statistics: {range}: its values are mirrored");
            }
        }
        for rules in [Rules::Predict, Rules::Upstream] {
            plan.encoder(rules)?;
        }
        Decoder::new(&plan.config, &plan.data_config, &plan.metadata, plan.action_options())?;
        Ok(plan)
    }

    /// What `--check` does beyond [`new`](Self::new): opens the software device, encodes the demo, reads every weight, and
    /// compares files with the hub's hashes. A card is not opened, since a server may be using it.
    ///
    /// # Errors
    /// What a start would be refused for; every tensor that is not finite and every file that is damaged.
    pub fn check(&self) -> Result<()> {
        if self.options.device != "metal" {
            self.open_soft()?;
        } else if !cfg!(feature = "metal") {
            Metal::open(&MetalOptions::default())?;
        }
        let decoder = Decoder::new(&self.config, &self.data_config, &self.metadata, self.action_options())?;
        let encoder = self.encoder(Rules::Predict)?;
        let robot = Robot::new(self.data_config.clone(), self.metadata.clone(), &encoder, &decoder);
        encoder.encode(&demo::observation(&robot)?.0, &Noise::Seed(self.options.seed))?;
        let report = self.checkpoint.check(&|_, _| ())?;
        info!(
            "{}: {} tensors, {} bytes, all finite",
            self.checkpoint.source().describe(),
            self.checkpoint.source().names().len(),
            report.bytes
        );
        for key in decoder.action().constant_keys() {
            info!("action {key} is constant: its statistics have no range");
        }
        Ok(())
    }

    /// The software device as the options say.
    ///
    /// # Errors
    /// A number of threads or an instruction set that this machine lacks.
    pub fn open_soft(&self) -> Result<Soft> {
        let device = Soft::builder();
        let device = self.options.threads.map_or(device.clone(), |threads| device.threads(threads));
        Ok(device.open()?)
    }

    /// Where packed weights are kept.
    pub(super) fn packed_cache(&self) -> Result<Option<PackedCache>> {
        Ok(match &self.options.cache_dir {
            Some(folder) if folder.as_os_str() == NO_CACHE => None,
            Some(folder) => Some(PackedCache::new(&self.checkpoint, folder)?),
            None => PackedCache::from_env(&self.checkpoint)?,
        })
    }

    pub(super) fn encoder_options(&self, rules: Rules) -> EncoderOptions {
        let defaults = EncoderOptions::default();
        match rules {
            Rules::Predict => EncoderOptions {
                resolution: self.options.resize,
                unknown_keys: UnknownKeys::Error,
                ..defaults
            },
            Rules::Upstream => EncoderOptions {
                resolution: ResolutionPolicy::Strict,
                unknown_keys: UnknownKeys::Warn,
                ..defaults
            },
        }
    }

    pub(super) fn action_options(&self) -> ActionOptions {
        ActionOptions::default().with_clip(self.options.clip_actions)
    }

    pub(super) fn encoder(&self, rules: Rules) -> Result<Encoder> {
        Ok(Encoder::new(
            &self.config,
            &self.data_config,
            &self.metadata,
            Arc::clone(&self.tokenizer),
            self.encoder_options(rules),
        )?)
    }

    pub(super) fn is_synthetic(&self) -> bool {
        matches!(self.spec, WeightsSpec::Synthetic { .. })
    }
}

fn open(options: &ServeOptions, spec: &WeightsSpec, downloading: DownloadProgress<'_>) -> Result<Checkpoint> {
    let mut open = OpenOptions::new();
    if options.download {
        open = open.download(downloading);
    }
    if let Some(name) = &options.config {
        open = open.config(ModelConfig::preset(name)?);
    }
    let hint = match spec {
        WeightsSpec::Hub(_) if !options.download => {
            " (--download fetches them; --weights synthetic needs none)"
        }
        _ => "",
    };
    Checkpoint::open(spec, &open).with_context(|| format!("weights {spec}{hint}"))
}
