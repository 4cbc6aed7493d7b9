//! [`ModelConfig`]: both configuration files together, checked against each other.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::{EagleConfig, Gr00tConfig};
use crate::{Error, Result, read_capped};

/// Largest configuration file that is read.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Everything that fixes the model's geometry. A value of this type is consistent.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// NVIDIA's `config.json`.
    pub gr00t: Gr00tConfig,
    /// The Eagle backbone's sizes.
    pub eagle: EagleConfig,
}

impl ModelConfig {
    /// Puts both files together.
    ///
    /// # Errors
    /// [`Error::Config`] that lists every contradiction.
    pub fn new(gr00t: Gr00tConfig, eagle: EagleConfig) -> Result<Self> {
        let config = Self { gr00t, eagle };
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(Error::Config(problems.join("; "))) }
    }

    /// GR00T N1.5-3B.
    pub fn n1_5() -> Self {
        Self { gr00t: Gr00tConfig::default(), eagle: EagleConfig::default() }
    }

    /// A 50-million-parameter model with N1.5's inputs, outputs, vocabulary, embodiments and head widths, but few
    /// and narrow layers: for tests, demos and simulators.
    pub fn mini() -> Self {
        let mut config = Self::n1_5();
        let Self { gr00t, eagle } = &mut config;
        gr00t.hidden_size = 128;
        gr00t.backbone_cfg.select_layer = 3;
        let head = &mut gr00t.action_head_cfg;
        head.backbone_embedding_dim = 128;
        head.hidden_size = 128;
        head.input_embedding_dim = 192;
        head.diffusion_model_cfg.num_attention_heads = 4;
        head.diffusion_model_cfg.cross_attention_dim = 128;
        head.diffusion_model_cfg.num_layers = 4;
        head.diffusion_model_cfg.output_dim = 128;
        head.vl_self_attention_cfg.num_attention_heads = 2;
        head.vl_self_attention_cfg.num_layers = 2;
        let vision = &mut eagle.vision_config;
        vision.hidden_size = 288;
        vision.intermediate_size = 304;
        vision.num_hidden_layers = 3;
        vision.num_attention_heads = 4;
        let text = &mut eagle.text_config;
        text.hidden_size = 128;
        text.intermediate_size = 384;
        text.num_hidden_layers = 3;
        text.num_attention_heads = 2;
        text.num_key_value_heads = 1;
        config
    }

    /// The preset called `name`: `n1.5` or `mini`.
    ///
    /// # Errors
    /// [`Error::Config`] for any other name.
    pub fn preset(name: &str) -> Result<Self> {
        match name {
            "n1.5" => Ok(Self::n1_5()),
            "mini" => Ok(Self::mini()),
            other => Err(Error::Config(format!("no preset {other:?}, there are \"n1.5\" and \"mini\""))),
        }
    }

    /// Reads `config.json` and, where given, the Eagle configuration (else N1.5's).
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Parse`], or [`Error::Config`] for contradictions.
    pub fn from_files(gr00t: impl AsRef<Path>, eagle: Option<&Path>) -> Result<Self> {
        let gr00t = read_json(gr00t.as_ref())?;
        let eagle = eagle.map(read_json).transpose()?.unwrap_or_default();
        Self::new(gr00t, eagle)
    }

    /// The same model with another action horizon; the weights do not depend on it.
    ///
    /// # Errors
    /// [`Error::Config`] if the horizon is 0 or beyond the position table.
    pub fn with_action_horizon(mut self, horizon: usize) -> Result<Self> {
        self.gr00t.action_horizon = horizon;
        self.gr00t.action_head_cfg.action_horizon = horizon;
        Self::new(self.gr00t, self.eagle)
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_capped(path, MAX_CONFIG_BYTES)?;
    serde_json::from_slice(&text).map_err(|e| Error::Parse { path: path.to_path_buf(), what: e.to_string() })
}
