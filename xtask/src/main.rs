//! `cargo xtask`: the developer's command. One file per command; `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod accuracy;
mod api;
mod bench;
mod ci;
mod demo;
mod device;
mod diff;
mod eval;
mod full_size;
mod fuzz;
mod inspect;
mod interrupt;
mod output;
mod picture;
mod predict;
mod progress;
mod quantile;
mod robot;
mod roofline;
mod say;
mod skipped;
mod step;
mod subject;
mod synth;
mod test;
mod verify;
mod weights;
mod workspace;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// Exit status of a command line that cannot be read.
const USAGE: u8 = 2;

/// Builds, checks and runs gr00t-tt.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a model, predict on the observation that ships with the project, judge, show and draw that, keep the page open
    Demo(demo::DemoArgs),
    /// Turn one observation into an action chunk
    Predict(predict::PredictArgs),
    /// Time kernels, stages and predictions, and hold them against the machine's limits
    Bench(bench::BenchArgs),
    /// On paper: what a prediction takes on a card that is not here, and what each next step would buy
    Roofline(roofline::RooflineArgs),
    /// Say what weights consist of, and whether they fit their config
    Inspect(inspect::InspectArgs),
    /// Write procedural weights as a checkpoint folder
    Synth(synth::SynthArgs),
    /// Formatting, lints, all tests and the documentation, in this order, up to the first failure
    Test(test::TestArgs),
    /// Judge folders of NVIDIA's results: every stage of a case, or a host pipeline's values
    Verify(verify::VerifyArgs),
    /// Run one case on two devices, op by op, and name the first op that diverges
    Diff(diff::DiffArgs),
    /// Hold every dtype policy against the fp32 reference: stages, joints, bytes and time
    Accuracy(accuracy::AccuracyArgs),
    /// Evaluate open-loop on the recorded actions of a LeRobot dataset, as NVIDIA's eval_policy does
    Eval(eval::EvalArgs),
    /// Feed every reader of foreign bytes inputs that coverage guides, until one fails or the time is up
    Fuzz(fuzz::FuzzArgs),
    /// List what each library makes public, one item a line
    Api(api::ApiArgs),
    /// `test`, then licences and sources, then the golden results
    Ci,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error)
            if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            eprintln!("{}", on_one_line(&error.to_string()));
            return ExitCode::from(USAGE);
        }
        Err(error) => error.exit(),
    };
    let outcome = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Roofline(args) => roofline::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Api(args) => api::run(&args),
        Command::Ci => ci::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// clap's message without its usage and advice, as one line like all others.
fn on_one_line(message: &str) -> String {
    let is_about_usage = |line: &&str| line.starts_with("Usage:") || line.starts_with("For more information");
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && !is_about_usage(line));
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_unknown_command_is_refused() {
        assert!(Cli::try_parse_from(["cargo xtask", "frobnicate"]).is_err());
    }
}
