//! `cargo xtask`: the developer's command. One file per command; `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod ci;
mod demo;
mod device;
mod diff;
mod full_size;
mod inspect;
mod interrupt;
mod output;
mod predict;
mod progress;
mod say;
mod step;
mod synth;
mod test;
mod verify;
mod weights;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, checks and runs gr00t-tt.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Predict on the observation that ships with the project, show the actions and draw them
    Demo(demo::DemoArgs),
    /// Turn one observation into an action chunk
    Predict(predict::PredictArgs),
    /// Say what weights consist of, and whether they fit their config
    Inspect(inspect::InspectArgs),
    /// Write procedural weights as a checkpoint folder
    Synth(synth::SynthArgs),
    /// Formatting, lints, all tests and the documentation, in this order, up to the first failure
    Test,
    /// Judge folders of NVIDIA's results: every stage of a case, or a host pipeline's values
    Verify(verify::VerifyArgs),
    /// Run one case on two devices, op by op, and name the first op that diverges
    Diff(diff::DiffArgs),
    /// `test`, then licences and sources, then the golden results
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Test => test::run(),
        Command::Verify(args) => verify::run(&args),
        Command::Diff(args) => diff::run(&args),
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
