//! Steps of a longer command: each runs a program, is timed, and the first failure ends the row.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::say::say;
use anyhow::{Context, Result, bail};

/// The steps that ran so far, with their times.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Runs `command` with its output passed through and no standard input.
    ///
    /// # Errors
    /// If it cannot be started or does not succeed; the message holds the table of steps.
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        self.run_with(name, command, |command| command.status().with_context(|| cannot_start(command)))
    }

    /// The same, with only those lines of its standard output that `shows` says yes to.
    ///
    /// # Errors
    /// As of [`Steps::run`].
    pub(crate) fn run_filtered(
        &mut self,
        name: &str,
        command: &mut Command,
        mut shows: impl FnMut(&str) -> bool,
    ) -> Result<()> {
        self.run_with(name, command, |command| {
            let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
            let output = child.stdout.take().context("no pipe of the standard output")?;
            // what is no text is shown all the same
            for line in BufReader::new(output).split(b'\n') {
                let line = String::from_utf8_lossy(&line.context("standard output")?).into_owned();
                if shows(&line) {
                    say!("{line}");
                }
            }
            child.wait().context("wait")
        })
    }

    fn run_with(
        &mut self,
        name: &str,
        command: &mut Command,
        run: impl FnOnce(&mut Command) -> Result<ExitStatus>,
    ) -> Result<()> {
        say!("==> {name}: {}", shown(command));
        let start = Instant::now();
        let status = run(command.stdin(Stdio::null()))?;
        let elapsed = start.elapsed();
        say!(
            "<== {name}: {}, {:.1} s",
            if status.success() { "ok" } else { "FAILED" },
            elapsed.as_secs_f64()
        );
        if !status.success() {
            bail!("{name} failed ({status}) after {:.1} s\n{}", elapsed.as_secs_f64(), self.table());
        }
        self.done.push((name.to_string(), elapsed));
        Ok(())
    }

    /// Runs `work` in this process as a step.
    ///
    /// # Errors
    /// If it fails; the message holds the table of steps.
    pub(crate) fn run_here(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        say!("==> {name}");
        let start = Instant::now();
        let outcome = work();
        let elapsed = start.elapsed();
        say!("<== {name}: {}, {:.1} s", if outcome.is_ok() { "ok" } else { "FAILED" }, elapsed.as_secs_f64());
        outcome.with_context(|| format!("{name} failed\n{}", self.table()))?;
        self.done.push((name.to_string(), elapsed));
        Ok(())
    }

    /// One line per step that passed.
    pub(crate) fn table(&self) -> String {
        let total: Duration = self.done.iter().map(|(_, t)| *t).sum();
        let mut lines: Vec<String> =
            self.done.iter().map(|(name, t)| format!("  {name:<10} ok {:>8.1} s", t.as_secs_f64())).collect();
        lines.push(format!("  {:<10}    {:>8.1} s", "total", total.as_secs_f64()));
        lines.join("\n")
    }
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start {}", command.get_program().display())
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let environment = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={:?} ", key.display(), value?.to_string_lossy())));
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let words = command.get_args().map(|a| format!(" {}", a.display()));
    environment.chain([program]).chain(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_is_an_error_that_lists_what_passed() {
        let mut steps = Steps::default();
        steps.run("first", Command::new("true").arg("x")).unwrap();
        let error = steps.run("second", &mut Command::new("false")).unwrap_err().to_string();
        assert!(error.starts_with("second failed"), "{error}");
        assert!(error.contains("first"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = Steps::default().run("x", &mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("cannot start no-such-program-here"));
    }

    #[test]
    fn a_filter_sees_every_line_and_the_status_counts() {
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "printf 'one\\ntwo'; exit 3"]);
        let error = Steps::default().run_filtered("x", &mut command, |line| {
            seen.push(line.to_string());
            false
        });
        assert!(error.unwrap_err().to_string().contains("exit status: 3"));
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps");
    }
}
