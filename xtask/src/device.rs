//! The device as commands ask for it, and the model on it.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use gr00t_host::checkpoint::TensorSource;
use gr00t_host::{ModelConfig, Weights};
use gr00t_model::{DtypePolicy, Gr00t, PackedCache};
use tt_ops::metal::MetalOptions;
use tt_ops::soft::Isa;
use tt_ops::{Device, Metal, Soft};

use crate::progress::Progress;

/// What runs the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Model {
    /// The fp32 reference
    Reference,
    /// The model on a device, through captured traces
    Device,
}

/// Which device the model is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// The CPU standing in for the card
    #[default]
    Soft,
    /// A Tenstorrent card or its simulator, in a build with the feature `metal`
    Metal,
}

/// Options of every command that opens a device.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DeviceArgs {
    /// What the device is; verify, eval and bench run on both
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: Kind,
    /// Data types of the device's weights: bf16, mixed or mixed_dit
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = policy)]
    pub(crate) policy: DtypePolicy,
    /// Instruction set level: portable, avx2, avx512 or amx; the best there is by default
    #[arg(long, value_name = "LEVEL", value_parser = isa)]
    pub(crate) isa: Option<Isa>,
    /// Threads of the software device; one per CPU by default
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Poison padding and unwritten memory, and look at every result: slow
    #[arg(long)]
    pub(crate) checked: bool,
}

/// A policy by name.
pub(crate) fn policy(name: &str) -> Result<DtypePolicy, String> {
    name.parse().map_err(|e: gr00t_model::ModelError| e.to_string())
}

/// A level by name.
pub(crate) fn isa(name: &str) -> Result<Isa, String> {
    Isa::parse(name).map_err(|e| e.to_string())
}

impl DeviceArgs {
    /// Opens the device.
    ///
    /// # Errors
    /// If the CPU lacks the level, the number of threads cannot be, or another device was asked for.
    pub(crate) fn open(&self) -> Result<Soft> {
        self.must_be_soft()?;
        let mut builder = Soft::builder().checked(self.checked);
        if let Some(isa) = self.isa {
            builder = builder.isa(isa);
        }
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        builder.open().context("device")
    }

    /// Refuses the card, for what does not run there.
    ///
    /// # Errors
    /// If the card was asked for.
    pub(crate) fn must_be_soft(&self) -> Result<()> {
        match self.device {
            Kind::Soft => Ok(()),
            Kind::Metal => {
                bail!(
                    "--device metal: this command runs on the software device alone; verify, eval and bench run on the card"
                )
            }
        }
    }

    /// Opens the card.
    ///
    /// # Errors
    /// In a build without the feature `metal`; no card; a card that another process holds.
    pub(crate) fn open_metal() -> Result<Metal> {
        Metal::open(&MetalOptions::default()).context("device")
    }

    /// Opens the software device and loads the model with one embodiment, packed weights from `cache` where there is one.
    ///
    /// # Errors
    /// If the device cannot be opened or the weights do not fit.
    pub(crate) fn load(
        &self,
        config: &ModelConfig,
        source: &Arc<dyn TensorSource>,
        embodiment: usize,
        cache: Option<PackedCache>,
        progress: &Arc<Progress>,
    ) -> Result<Gr00t<Soft>> {
        self.load_on(self.open()?, config, source, embodiment, cache, progress)
    }

    /// Loads the model on a device that is open.
    ///
    /// # Errors
    /// If the weights do not fit.
    pub(crate) fn load_on<D: Device>(
        &self,
        device: D,
        config: &ModelConfig,
        source: &Arc<dyn TensorSource>,
        embodiment: usize,
        cache: Option<PackedCache>,
        progress: &Arc<Progress>,
    ) -> Result<Gr00t<D>> {
        let shown = Arc::clone(progress);
        Gr00t::builder(config.clone(), Weights::new(Arc::clone(source)), device)
            .dtype_policy(self.policy)
            .embodiments([embodiment])
            .packed_cache(cache)
            .on_progress(move |p| shown.set("loading weights", p.elements as u64, p.total_elements as u64))
            .build()
            .map_err(|e| anyhow!("{e}"))
    }
}
