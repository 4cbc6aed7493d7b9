//! What the server is told: flags, and under them the environment of the launchers.

mod environment;
mod help;
mod parse;
mod resolve;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use gr00t_host::image::ResolutionPolicy;
use gr00t_model::{DtypePolicy, TraceLayout};
use serde::Serialize;

pub use environment::{Environment, KNOWN_VARIABLES};
pub use parse::{Cli, Command, ParseError, parse};

/// Options of the server. Every flag has an environment variable, which the flag wins over; see [`KNOWN_VARIABLES`].
#[derive(Debug, Clone, Args, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "a flag each")]
pub struct ServeOptions {
    /// Address to listen on; every interface is 0.0.0.0
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of HTTP; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// synthetic or synthetic:SEED, a folder, a safetensors file, or owner/name@revision; nvidia/GR00T-N1.5-3B by default
    #[arg(long, value_name = "WEIGHTS")]
    pub weights: Option<String>,
    /// Model sizes, mini or n1.5, where the weights bring no config.json
    #[arg(long, value_name = "CONFIG")]
    pub config: Option<String>,
    /// Fetch a repository that is not in the local cache
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub download: bool,
    /// Statistics, a metadata.json, in place of the checkpoint's
    #[arg(long, value_name = "FILE")]
    pub metadata: Option<PathBuf>,
    /// Cameras and keys: a built-in data config or a TOML file; by default the embodiment's
    #[arg(long, value_name = "NAME")]
    pub data_config: Option<String>,
    /// Embodiment tag; gr1 by default, and the data config's where one is given
    #[arg(long, value_name = "TAG")]
    pub embodiment: Option<String>,
    /// Folder with a tokenizer.json in place of the checkpoint's
    #[arg(long, value_name = "FOLDER")]
    pub tokenizer: Option<PathBuf>,
    /// Data types of the weights: bf16, mixed or mixed_dit
    #[arg(long, default_value = "mixed_dit")]
    #[serde(serialize_with = "parse::shown")]
    pub policy: DtypePolicy,
    /// Grouping of stages into traces: per_stage or two
    #[arg(long, value_name = "LAYOUT", default_value = "per_stage")]
    #[serde(serialize_with = "parse::shown")]
    pub trace_layout: TraceLayout,
    /// Euler steps, if not the model's own
    #[arg(long, value_name = "STEPS")]
    pub denoising_steps: Option<usize>,
    /// Where the model runs: soft (the CPU) or metal (a card)
    #[arg(long, default_value = "soft", value_parser = ["soft", "metal"])]
    pub device: String,
    /// Which card
    #[arg(long, default_value_t = 0)]
    pub device_id: usize,
    /// Bytes of a card's memory for traces
    #[arg(long, value_name = "BYTES", default_value_t = 67_108_864)]
    pub trace_region_size: usize,
    /// Bytes of a card's L1 for small buffers
    #[arg(long, value_name = "BYTES", default_value_t = 32_768)]
    pub l1_small_size: usize,
    /// Threads of the software device; as many as there are CPUs by default
    #[arg(long)]
    pub threads: Option<usize>,
    /// Folder of packed weights and of the reference's results, which make the next start quick; off for none; by default
    /// gr00t-tt in the user's cache folder, where there is one
    #[arg(long, value_name = "FOLDER")]
    pub cache_dir: Option<PathBuf>,
    /// Predictions before the door opens
    #[arg(long, value_name = "RUNS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warmup_runs: u32,
    /// Least correlation of the warm-up's actions with the fp32 reference; the boot fails below it
    #[arg(long, value_name = "PCC", default_value_t = 0.999, value_parser = parse::correlation)]
    pub warmup_pcc_min: f64,
    /// Seed of requests that bring none
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Requests that may wait for the device
    #[arg(long, value_name = "REQUESTS", default_value_t = 16)]
    pub queue: u16,
    /// Longest time from a request's arrival to its answer
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub deadline_ms: u64,
    /// Largest body of a request
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_body_mib: u16,
    /// The servers beside HTTP
    #[command(flatten)]
    #[serde(flatten)]
    pub protocols: crate::protocols::ProtocolOptions,
    /// Open connections
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,
    /// What a frame of another size than the training data's gets on /predict: resize, letterbox or strict
    #[arg(long, value_name = "POLICY", default_value = "resize")]
    #[serde(serialize_with = "parse::shown")]
    pub resize: ResolutionPolicy,
    /// Move actions outside the training data's range to its edge
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub clip_actions: bool,
    /// File with the bearer token that clients must show; GR00T_API_TOKEN is the token itself
    #[arg(long, value_name = "FILE")]
    pub api_token_file: Option<PathBuf>,
    /// Origins beside the server's own whose web pages may use it, as in http://robot-pc:8000; several with commas
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<String>,
    /// Least level of log lines: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    #[serde(serialize_with = "parse::shown")]
    pub log_level: tracing::Level,
    /// Check options, weights (every byte of them) and statistics, and exit
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub check: bool,
    /// Print the options as they were understood, and exit
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub print_config: bool,
    /// The token of `GR00T_API_TOKEN`; no flag, since flags are seen by every user of the machine
    #[arg(skip)]
    #[serde(skip)]
    pub api_token: Option<crate::auth::Token>,
    /// What was noticed in the environment, one line each
    #[arg(skip)]
    #[serde(skip)]
    pub notes: Vec<String>,
}
