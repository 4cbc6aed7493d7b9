//! What the server is told: flags, and under them the environment of the launchers.

mod environment;
mod parse;
mod resolve;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use gr00t_host::image::ResolutionPolicy;
use gr00t_model::{DtypePolicy, TraceLayout};
use serde::Serialize;

use crate::origin::Origin;

pub use environment::{Environment, KNOWN_VARIABLES, environment};
pub(crate) use parse::boolean;
pub use parse::{Cli, Command, ParseError, parse};

/// Where `--help` lists a flag.
pub(crate) const LISTENING: &str = "Listening";
const MODEL: &str = "Model";
const DEVICE: &str = "Device";
const REQUESTS: &str = "Requests";
const START: &str = "Start";
const INSTEAD: &str = "Instead of serving";

/// Options of the server. Every flag but `--print-config` has an environment variable, which the flag wins over; see
/// [`KNOWN_VARIABLES`].
#[derive(Debug, Clone, Args, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "a flag each")]
pub struct ServeOptions {
    /// Address to listen on; every interface is 0.0.0.0
    #[arg(long, value_name = "ADDRESS", help_heading = LISTENING, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of HTTP; 0 takes a free one
    #[arg(long, help_heading = LISTENING, default_value_t = 8000)]
    pub port: u16,
    /// synthetic or synthetic:SEED, a folder, a safetensors file, or owner/name@revision; nvidia/GR00T-N1.5-3B by default
    #[arg(long, value_name = "WEIGHTS", help_heading = MODEL)]
    pub weights: Option<String>,
    /// Model sizes, mini or n1.5, where the weights bring no config.json
    #[arg(long, value_name = "CONFIG", help_heading = MODEL)]
    pub config: Option<String>,
    /// Fetch a repository that is not in the local cache
    #[arg(long, value_name = "BOOL", help_heading = MODEL, hide_default_value = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub download: bool,
    /// Statistics, a metadata.json, in place of the checkpoint's
    #[arg(long, value_name = "FILE", help_heading = MODEL)]
    pub metadata: Option<PathBuf>,
    /// Cameras and keys: a built-in data config or a TOML file; by default the embodiment's
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    pub data_config: Option<String>,
    /// Embodiment tag; gr1 by default, and the data config's where one is given
    #[arg(long, value_name = "TAG", help_heading = MODEL)]
    pub embodiment: Option<String>,
    /// Folder with a tokenizer.json in place of the checkpoint's
    #[arg(long, value_name = "FOLDER", help_heading = MODEL)]
    pub tokenizer: Option<PathBuf>,
    /// Data types of the weights: bf16, mixed or mixed_dit
    #[arg(long, help_heading = MODEL, default_value = "mixed_dit")]
    #[serde(serialize_with = "parse::shown")]
    pub policy: DtypePolicy,
    /// Grouping of stages into traces: per_stage or two
    #[arg(long, value_name = "LAYOUT", help_heading = DEVICE, default_value = "per_stage")]
    #[serde(serialize_with = "parse::shown")]
    pub trace_layout: TraceLayout,
    /// Euler steps, if not the model's own
    #[arg(long, value_name = "STEPS", help_heading = MODEL, value_parser = parse::positive)]
    pub denoising_steps: Option<usize>,
    /// Where the model runs: soft (the CPU) or metal (a card)
    #[arg(long, help_heading = DEVICE, default_value = "soft", value_parser = ["soft", "metal"])]
    pub device: String,
    /// Which card
    #[arg(long, help_heading = DEVICE, default_value_t = 0)]
    pub device_id: usize,
    /// Bytes of a card's memory for traces
    #[arg(long, value_name = "BYTES", help_heading = DEVICE, default_value_t = 67_108_864)]
    pub trace_region_size: usize,
    /// Bytes of a card's L1 for small buffers
    #[arg(long, value_name = "BYTES", help_heading = DEVICE, default_value_t = 32_768)]
    pub l1_small_size: usize,
    /// Threads of the software device; as many as there are CPUs by default
    #[arg(long, help_heading = DEVICE, value_parser = parse::positive)]
    pub threads: Option<usize>,
    /// Folder of packed weights and of the reference's results, which make the next start quick; off for none; by default
    /// gr00t-tt in the user's cache folder, where there is one
    #[arg(long, value_name = "FOLDER", help_heading = DEVICE)]
    pub cache_dir: Option<PathBuf>,
    /// Predictions before the door opens
    #[arg(long, value_name = "RUNS", help_heading = START, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warmup_runs: u32,
    /// Least correlation of the warm-up's actions with the fp32 reference; the boot fails below it
    #[arg(long, value_name = "PCC", help_heading = START, default_value_t = 0.999, value_parser = parse::correlation)]
    pub warmup_pcc_min: f64,
    /// Seed of requests that bring none
    #[arg(long, help_heading = REQUESTS, default_value_t = 0)]
    pub seed: u64,
    /// Requests that may wait for the device
    #[arg(long, value_name = "REQUESTS", help_heading = REQUESTS, default_value_t = 16)]
    pub queue: u16,
    /// Longest time from a request's arrival to its answer
    #[arg(long, value_name = "MS", help_heading = REQUESTS, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub deadline_ms: u64,
    /// Largest body of a request
    #[arg(long, value_name = "MIB", help_heading = REQUESTS, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_body_mib: u16,
    /// The servers beside HTTP
    #[command(flatten)]
    #[serde(flatten)]
    pub protocols: crate::protocols::ProtocolOptions,
    /// Open connections
    #[arg(long, value_name = "COUNT", help_heading = REQUESTS, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,
    /// What a frame of another size than the training data's gets on /predict: resize, letterbox or strict
    #[arg(long, value_name = "POLICY", help_heading = REQUESTS, default_value = "resize")]
    #[serde(serialize_with = "parse::shown")]
    pub resize: ResolutionPolicy,
    /// Move actions outside the training data's range to its edge
    #[arg(long, value_name = "BOOL", help_heading = REQUESTS, hide_default_value = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub clip_actions: bool,
    /// File with the bearer token that clients must show; GR00T_API_TOKEN is the token itself
    #[arg(long, value_name = "FILE", help_heading = LISTENING)]
    pub api_token_file: Option<PathBuf>,
    /// Origins whose web pages may use the server, as in http://robot-pc:8000: its own under a host's name, others through
    /// WebSocket alone; several with commas
    #[arg(long, value_name = "ORIGIN", help_heading = LISTENING, value_delimiter = ',')]
    pub allow_origin: Vec<Origin>,
    /// Least level of log lines: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", help_heading = START, default_value = "info")]
    #[serde(serialize_with = "parse::shown")]
    pub log_level: tracing::Level,
    /// Check options, weights (every byte of them) and statistics, and exit
    #[arg(long, value_name = "BOOL", help_heading = INSTEAD, hide_default_value = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
    pub check: bool,
    /// Print the options as they were understood, and exit
    #[arg(long, value_name = "BOOL", help_heading = INSTEAD, hide_default_value = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = parse::boolean)]
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
