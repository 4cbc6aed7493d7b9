//! The program: options, log, and one of serve, smoke and bench.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use gr00t_host::OneLine;
use gr00t_serve::life::{self, Plan, Progress};
use gr00t_serve::options::{Command, ParseError, ServeOptions, environment, parse};
use gr00t_serve::tools::{bench, bench_in_words, smoke, smoke_in_words};
use serde_json::Value;

/// Longest wait for threads that are in the middle of something when the program ends.
const LAST_WAIT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = match environment(std::env::vars_os()).and_then(|set| parse(std::env::args_os(), &set)) {
        Ok(cli) => cli,
        Err(ParseError::Flags(error)) => error.exit(),
        Err(error) => return failed(&error.into()),
    };
    let done = match cli.command {
        Some(Command::Smoke(options)) => smoke(&options).and_then(|report| show(&report, smoke_in_words)),
        Some(Command::Bench(options)) => {
            eprintln!("{} requests to warm up, then {} …", options.warmup, options.reps);
            bench(&options).and_then(|report| show(&report, bench_in_words))
        }
        None => serve(cli.serve),
    };
    done.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", OneLine(format_args!("{error:#}")));
    ExitCode::FAILURE
}

/// Prints JSON; nobody may be reading, as behind `| head`.
fn say(json: &Value) {
    let _ = writeln!(std::io::stdout(), "{json:#}");
}

/// Prints a report: JSON on standard output, then in words on standard error. One that says `"pass": false` fails the program.
fn show(report: &Value, in_words: impl Fn(&Value) -> String) -> Result<()> {
    say(report);
    eprintln!("{}", in_words(report));
    anyhow::ensure!(report.get("pass") != Some(&Value::Bool(false)), "{}", report["problems"]);
    Ok(())
}

fn serve(options: ServeOptions) -> Result<()> {
    life::init_log(options.log_level);
    if options.print_config {
        say(&serde_json::to_value(&options)?);
        return Ok(());
    }
    if options.check {
        let progress = Progress::new(None);
        return Plan::new(&options, &|file, done, total| progress.download(file, done, total))?.check();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("runtime")?;
    let served = runtime.block_on(life::run(options));
    // a boot that was told to stop cannot be interrupted, only left behind
    runtime.shutdown_timeout(LAST_WAIT);
    served
}
