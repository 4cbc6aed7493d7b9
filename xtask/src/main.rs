//! `cargo xtask`: the developer's command. One file per command; `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod ci;
mod step;
mod test;
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
    /// Formatting, lints, all tests and the documentation, in this order, up to the first failure
    Test,
    /// `test`, then licences and sources, then the golden results
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Test => test::run(),
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
