//! `cargo xtask roofline`: on paper, what a prediction takes on a card that is not here.
//!
//! The op list is captured from the model itself, on a device that knows shapes alone; the card's rates and costs are measurements
//! that others published ([`card`]).

mod capture;
mod card;
mod report;
mod shapes;
mod steps;
mod work;

#[cfg(test)]
mod model_work;

use std::path::PathBuf;

use anyhow::{Context, Result};
use gr00t_host::ModelConfig;
use gr00t_model::DtypePolicy;

use crate::device;
use crate::output;
use capture::{Geometry, capture};
use card::Card;
use report::Report;

/// Arguments of `roofline`.
#[derive(Debug, clap::Args)]
pub(crate) struct RooflineArgs {
    /// The card: p150a
    #[arg(long, value_name = "CARD", default_value = "p150a", value_parser = Card::named)]
    device: Card,
    /// Model sizes, mini or n1.5
    #[arg(long, value_name = "CONFIG", default_value = "n1.5")]
    config: String,
    /// Data types of the weights: bf16, mixed or mixed_dit
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = device::policy)]
    policy: DtypePolicy,
    /// Camera views
    #[arg(long, value_name = "N", default_value_t = 1)]
    views: usize,
    /// Tokens of the prompt, images included
    #[arg(long, value_name = "N", default_value_t = 296)]
    tokens: usize,
    /// Tokens are padded to a multiple of this
    #[arg(long, value_name = "N", default_value_t = 32)]
    bucket: usize,
    /// Denoising steps
    #[arg(long, value_name = "N", default_value_t = 4)]
    steps: usize,
    /// Write everything to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Captures, prices and prints.
///
/// # Errors
/// Options that the model refuses; a file that cannot be written.
pub(crate) fn run(args: &RooflineArgs) -> Result<()> {
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let config = ModelConfig::preset(&args.config)?;
    let &RooflineArgs { views, tokens, bucket, steps, policy, .. } = args;
    let geometry = Geometry { views, tokens, bucket, steps, policy };
    let plan = capture(&config, geometry)?;
    let steps = steps::price(&config, geometry, &args.device)?;
    let report = Report::new(&plan, steps, &args.device);
    report.print();
    if let Some(path) = &args.json {
        output::write(path, &serde_json::to_vec_pretty(&report).context("report")?)?;
    }
    Ok(())
}
