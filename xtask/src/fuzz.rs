//! `cargo xtask fuzz`: the coverage-guided fuzzers of `fuzz/`, one after the other, with cargo-fuzz and libFuzzer.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::say::say;
use crate::step::Steps;
use crate::workspace;

/// Longest time for one input, in seconds: what takes longer counts as a hang.
const HANG: u64 = 25;
/// Most memory of a fuzzer, in MiB: what wants more counts as a leak or a bomb.
const MEMORY: u64 = 3072;
/// Longest input, in bytes; whole requests fit.
const INPUT: u64 = 16384;

/// Arguments of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Seconds for each target
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Targets; all of `fuzz/fuzz_targets` unless named
    targets: Vec<String>,
}

/// Runs the targets up to the first input that makes one fail; libFuzzer says where that input is kept.
pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let folder = workspace::root().join("fuzz");
    let known = targets(&folder)?;
    if let Some(unknown) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("no target {unknown} in fuzz/fuzz_targets, there are {}", known.join(", "));
    }
    let wanted = if args.targets.is_empty() { &known } else { &args.targets };
    ensure!(workspace::has_cargo("fuzz"), "cargo-fuzz is not installed: cargo install cargo-fuzz");
    let mut steps = Steps::default();
    for target in wanted {
        let corpus = folder.join("corpus").join(target);
        std::fs::create_dir_all(&corpus).with_context(|| format!("folder {}", corpus.display()))?;
        steps.run(target, &mut command(&folder, target, args.seconds))?;
    }
    say!("no input made a target fail\n{}", steps.table());
    Ok(())
}

/// Finds go to `corpus`, and the search starts from `seeds` as well. No sanitizer: those need a nightly compiler, and the
/// readers are in crates that forbid unsafe code.
fn command(folder: &Path, target: &str, seconds: u64) -> Command {
    let mut command = Command::new(workspace::cargo());
    command
        .args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"])
        .arg(folder)
        .arg(target)
        .arg(folder.join("corpus").join(target))
        .arg(folder.join("seeds").join(target))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={HANG}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-max_len={INPUT}"))
        .arg("-print_final_stats=1")
        .current_dir(workspace::root());
    command
}

/// Names of the targets, sorted.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.join("fuzz_targets");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("folder {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("folder {}", folder.display()))?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_in_the_manifest_and_has_seeds() {
        let folder = workspace::root().join("fuzz");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let names = targets(&folder).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), names.len());
        for name in names {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"\n")), "{name}");
            assert!(std::fs::read_dir(folder.join("seeds").join(&name)).unwrap().count() > 0, "{name}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_refused() {
        let args = FuzzArgs { seconds: 1, targets: vec!["nothing".into()] };
        assert!(run(&args).unwrap_err().to_string().starts_with("no target nothing"));
    }
}
