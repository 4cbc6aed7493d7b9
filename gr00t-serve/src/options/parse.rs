//! Flags over environment over defaults.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use clap::{Parser, Subcommand};
use gr00t_host::checkpoint::GR00T_N1_5_3B;
use serde::Serializer;

use super::ServeOptions;
use super::environment::{Environment, KNOWN_VARIABLES, fixed, launcher_weights, unknown, value};
use crate::auth::Token;
use crate::tools::{BenchOptions, SmokeOptions};

/// Largest token file that is read.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Below the flags of `--help`.
const EXAMPLES: &str = "\
Examples:
  gr00t-serve --weights synthetic --config mini
      a small model with made-up weights, to try clients; the page is at http://127.0.0.1:8000/
  gr00t-serve --weights nvidia/GR00T-N1.5-3B --zmq-port 5555
      NVIDIA's weights from the local Hugging Face cache, for NVIDIA's clients too
  gr00t-serve smoke --url http://127.0.0.1:8000
      is what the server answers what the fp32 reference gives?

Flags have environment variables too, most of them GR00T_ and the flag's name in capitals (GR00T_DATA_CONFIG); flags win.";

/// GR00T N1.5 policy server
#[derive(Debug, Parser)]
#[command(name = "gr00t-serve", version, args_conflicts_with_subcommands = true, args_override_self = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What else to do than to serve
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the server
    #[command(flatten)]
    pub serve: ServeOptions,
}

/// Tools that talk to a server.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Post the server's demo and compare the answer with the fp32 reference: JSON on standard output, words on standard error
    Smoke(SmokeOptions),
    /// Measure throughput and latency with the server's demo: JSON on standard output, a table on standard error
    Bench(BenchOptions),
}

/// Why options were not understood, or what was asked for instead, such as help.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// clap's own message, help and version included.
    #[error(transparent)]
    Flags(#[from] clap::Error),
    /// What is wrong with the environment, the token file or values beside each other; all of it.
    #[error("{}", .0.join("; "))]
    Values(Vec<String>),
}

/// Reads `arguments` (program name first) over `environment`.
///
/// # Errors
/// [`ParseError`]: unknown flags and `GR00T_*` variables, malformed values.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<Cli, ParseError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Cli { command, .. } = match Cli::try_parse_from(&arguments) {
        Ok(cli) if cli.command.is_some() => return Ok(cli),
        Ok(cli) => cli,
        Err(error) => return Err(error.into()),
    };
    debug_assert!(command.is_none(), "returned above");

    let mut problems: Vec<String> =
        unknown(environment).into_iter().map(|name| format!("{name}: no such option")).collect();
    let (wrong, notes) = fixed(environment);
    problems.extend(wrong);
    let mut words: Vec<OsString> = arguments.first().cloned().into_iter().collect();
    let model = GR00T_N1_5_3B.split_once('@').map_or(GR00T_N1_5_3B, |(model, _)| model);
    if let Some(weights) = launcher_weights(environment, model) {
        words.push(format!("--weights={weights}").into());
    }
    for (name, flag) in KNOWN_VARIABLES {
        let Some(value) = value(environment, name) else { continue };
        let word = OsString::from(format!("--{flag}={value}"));
        // alone, so that the message can name the variable rather than a flag that nobody wrote
        match Cli::try_parse_from([OsString::from("gr00t-serve"), word.clone()]) {
            Ok(_) => words.push(word),
            Err(error) => problems.push(format!("{name}: {}", first_line(&error))),
        }
    }
    // an empty one, as of a secret that is not there, must not open the server to everybody
    let api_token = match environment.get("GR00T_API_TOKEN").map(|text| Token::new(text)).transpose() {
        Ok(token) => token,
        Err(what) => {
            problems.push(format!("GR00T_API_TOKEN: {what}; without the variable nobody is asked for one"));
            None
        }
    };
    words.extend(arguments.into_iter().skip(1));
    let mut cli = Cli::try_parse_from(words)?;
    cli.serve.api_token = api_token;
    cli.serve.notes = notes;
    if let Some(file) = &cli.serve.api_token_file {
        match token_file(file) {
            Ok(token) => cli.serve.api_token = Some(token),
            Err(what) => problems.push(format!("api token file {}: {what}", file.display())),
        }
    }
    if let Some(layout) = value(environment, "GR00T_LAYOUT") {
        let embodiment = cli.serve.embodiment.as_deref().unwrap_or("gr1");
        if layout != embodiment {
            problems.push(format!("GR00T_LAYOUT: got {layout:?}, wanted the embodiment {embodiment}"));
        }
    }
    problems.extend(cli.serve.port_clash());
    if problems.is_empty() { Ok(cli) } else { Err(ParseError::Values(problems)) }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn token_file(path: &Path) -> Result<Token, String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_TOKEN_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Token::new(&text)
}

/// A boolean as people write it; anything else is an error and never silently true or false.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("wanted 1, true, yes, on, 0, false, no or off".into()),
    }
}

/// A count that is not 0.
pub(super) fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "wanted a whole number from 1".to_owned())
}

/// A correlation from -1 to 1.
pub(super) fn correlation(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "wanted a number from -1 to 1".to_owned())?;
    if (-1.0..=1.0).contains(&number) { Ok(number) } else { Err("wanted a number from -1 to 1".into()) }
}

/// A value as its flag takes it.
pub(super) fn shown<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
