//! The op suite on the card or its functional simulator, in processes of its own: the simulator ends the process at what
//! it cannot do, and then the next process goes on with the next case. Says that it was skipped where there is neither.
//!
//! Cases that do not hold there are in `metal/ignored.rs`, each with its reason; one that passes nevertheless fails the
//! test, and so does an entry that no case has, so that the list stays true.
#![cfg(feature = "metal")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "metal/ignored.rs"]
mod ignored;
#[path = "metal/placement.rs"]
mod placement;
#[path = "metal/table.rs"]
mod table;
#[path = "metal/trace.rs"]
mod trace;

use std::process::Command;

use serde::{Deserialize, Serialize};
use tt_ops::metal::MetalOptions;
use tt_ops::suite::{self, CaseResult, Difference, Mode, Watcher};
use tt_ops::{Device, Metal};

use table::Row;

/// `group first mode`: what a child runs.
const CHILD: &str = "TT_OPS_SUITE_CHILD";
/// Only groups whose number is in this list, separated by commas.
const ONLY: &str = "TT_OPS_SUITE_GROUPS";
/// Where to write what all groups gave, traced, as a page (`docs/ops-metal.md`).
const TABLE: &str = "TT_OPS_SUITE_TABLE";
/// Marks lines of a child that are for its parent.
const MARK: &str = "@suite ";

/// What a child tells its parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Event {
    Opened {
        device: String,
    },
    Starts {
        index: usize,
        op: String,
        case: String,
    },
    Ends {
        op: String,
        case: String,
        dtype: Option<String>,
        difference: Option<Difference>,
        max_ulp: Option<f64>,
        failure: Option<String>,
    },
    Done,
}

struct Teller;

impl Watcher for Teller {
    fn starts(&self, index: usize, op: &'static str, case: &str) {
        tell(&Event::Starts { index, op: op.into(), case: case.into() });
    }

    fn ends(&self, _: usize, result: &CaseResult) {
        let CaseResult { op, case, dtype, difference, max_ulp, failure, .. } = result.clone();
        let dtype = dtype.map(|dtype| dtype.to_string());
        tell(&Event::Ends { op: op.into(), case, dtype, difference, max_ulp, failure });
    }
}

fn tell(event: &Event) {
    println!("{MARK}{}", serde_json::to_string(event).unwrap());
}

fn child(task: &str) {
    let words: Vec<&str> = task.split(' ').collect();
    let (group, first) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let mode = if words[2] == "traced" { Mode::Traced } else { Mode::Eager };
    let device = Metal::open(&MetalOptions::default()).unwrap();
    tell(&Event::Opened { device: device.describe() });
    suite::run_group(&device, mode, group, first, &Teller);
    tell(&Event::Done);
}

/// Runs a group in as many processes as it takes; with it, what the device says of itself.
fn group(test: &str, number: usize, mode: &str) -> (Vec<Row>, String) {
    let (mut rows, mut first, mut describe) = (Vec::new(), 0, String::new());
    // A case that ended its process.
    let ended = |op: String, case: String, failure| {
        let ignored = ignored::reason(&op, &case);
        Row { op, case, dtype: None, difference: None, max_ulp: None, failure, ignored }
    };
    loop {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(CHILD, format!("{number} {first} {mode}"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let events = text.lines().filter_map(|line| line.split_once(MARK));
        let mut open = None;
        for (_, event) in events {
            match serde_json::from_str(event).unwrap() {
                Event::Opened { device } => describe = device,
                Event::Starts { index, op, case } => open = Some((index, op, case)),
                Event::Ends { op, case, dtype, difference, max_ulp, failure } => {
                    open = None;
                    let ignored = ignored::reason(&op, &case);
                    rows.push(Row { op, case, dtype, difference, max_ulp, failure, ignored });
                }
                Event::Done => return (rows, describe),
            }
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = text
            .lines()
            .chain(errors.lines())
            .rfind(|line| line.contains("ERROR") || line.contains("panicked"));
        let failure = Some(format!("{}: {}", output.status, said.unwrap_or("no word")));
        let Some((index, op, case)) = open else {
            rows.push(ended(format!("group {number}"), "operands".into(), failure));
            return (rows, describe);
        };
        rows.push(ended(op, case, failure));
        first = index + 1;
    }
}

/// Whether there is something to open; says so where there is not.
fn device_is_there() -> bool {
    let there =
        std::env::var_os("TT_METAL_SIMULATOR").is_some() || std::path::Path::new("/dev/tenstorrent").exists();
    if !there {
        println!("skipped: no card, and TT_METAL_SIMULATOR is not set");
    }
    there
}

fn suite_on_device(test: &str, mode: &str) {
    if let Ok(task) = std::env::var(CHILD) {
        child(&task);
        return;
    }
    if !device_is_there() {
        return;
    }
    let only: Option<Vec<usize>> =
        std::env::var(ONLY).ok().map(|list| list.split(',').map(|n| n.parse().unwrap()).collect());
    let wanted = |number: &usize| only.as_ref().is_none_or(|only| only.contains(number));
    let (mut problems, mut all, mut device) = (Vec::new(), Vec::new(), String::new());
    for number in (0..suite::groups::<Metal>()).filter(wanted) {
        let (rows, describe) = group(test, number, mode);
        device = describe;
        for row in &rows {
            let numbers = row.difference.map_or_else(String::new, |d| {
                format!("PCC {:.6}, relative rms {:.1e}, max abs {:.1e}", d.pcc, d.relative_rms, d.max_abs)
            });
            let verdict = match (&row.failure, row.ignored) {
                (None, None) => "ok".to_string(),
                (Some(_), Some(reason)) => format!("ignored: {reason}"),
                (Some(failure), None) => format!("FAILED: {failure}"),
                (None, Some(_)) => "passes, but is on the list of ignored cases".to_string(),
            };
            println!("{} | {} | {mode} | {numbers} | {verdict}", row.op, row.case);
            if row.failure.is_some() != row.ignored.is_some() {
                problems.push(format!("{}, {}: {verdict}", row.op, row.case));
            }
        }
        all.extend(rows);
    }
    if only.is_none() {
        problems.extend(ignored::without_case(&all));
        let file = std::env::var_os(TABLE).filter(|_| mode == "traced");
        if let Some(file) = file {
            std::fs::write(file, table::page(&device, &all)).unwrap();
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn suite_eager() {
    suite_on_device("suite_eager", "eager");
}

#[test]
fn suite_traced() {
    suite_on_device("suite_traced", "traced");
}
