//! What a result was measured on, from `/proc`; what cannot be read is left out.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};
use tt_ops::soft::Isa;

use crate::workspace;

/// The circumstances of all results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Machine {
    cpu: String,
    cpus: usize,
    isa: String,
    threads: usize,
    /// What the card is, where one was measured, and not the CPU: then there is no level and there are no threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    card: Option<String>,
    commit: String,
    profile: String,
    /// Runnable tasks over the last minute, before measuring.
    load_average: String,
}

/// This machine, with a software device of `threads` threads at `isa`.
pub(super) fn of_cpu(isa: Isa, threads: usize) -> Machine {
    describe(isa.name(), threads, None)
}

/// This machine with a card, which says what it is.
pub(super) fn of_card(card: String) -> Machine {
    describe("", 0, Some(card))
}

fn describe(isa: &str, threads: usize, card: Option<String>) -> Machine {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = field(&cpuinfo, "model name").unwrap_or("unknown").to_string();
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    Machine {
        cpu,
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        isa: isa.into(),
        threads,
        card,
        commit: commit().unwrap_or_else(|| "unknown".into()),
        profile: if cfg!(debug_assertions) { "dev" } else { "release" }.into(),
        load_average: load.split(' ').next().unwrap_or_default().into(),
    }
}

impl Machine {
    /// Threads of the device; none of a card.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether times of the two can be compared: CPU, instruction set, threads, card and profile.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of =
            |m: &Self| (m.cpu.clone(), m.cpus, m.isa.clone(), m.threads, m.card.clone(), m.profile.clone());
        of(self) == of(other)
    }

    /// One line.
    pub(super) fn line(&self) -> String {
        let Self { cpu, cpus, isa, threads, card, commit, profile, load_average } = self;
        let device = card.clone().unwrap_or_else(|| format!("{isa}, {threads} threads"));
        format!(
            "{cpu}, {cpus} CPUs; {device}; commit {commit}, {profile} profile; load average {load_average}"
        )
    }
}

/// Memory of this process in MB: resident now (`VmRSS`), or the most so far (`VmHWM`).
pub(super) fn memory_mb(name: &str) -> Option<f64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let kib: f64 = field(&status, name)?.split(' ').next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            std::process::Command::new("git").current_dir(workspace::root()).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(git(&["rev-parse", "--short", "HEAD"])? + if changed { " with changes" } else { "" })
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Machine {
        /// A machine that does not exist.
        pub(in crate::bench) fn for_tests() -> Self {
            Self {
                cpu: "a CPU".into(),
                cpus: 2,
                isa: "avx512".into(),
                threads: 2,
                card: None,
                commit: "0123abc".into(),
                profile: "dev".into(),
                load_average: "0.10".into(),
            }
        }

        /// The same with another number of threads.
        pub(in crate::bench) fn with_threads(self, threads: usize) -> Self {
            Self { threads, ..self }
        }
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmHWM:\t  20 kB\nVmRSS:\t  10 kB\n";
        assert_eq!(field(text, "VmRSS"), Some("10 kB"));
        assert_eq!(field(text, "Vm"), None);
    }
}
