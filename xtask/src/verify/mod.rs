//! `cargo xtask verify`: judges folders of NVIDIA's results, of the form of `golden/`, and any others like them.

mod case;
mod end_to_end;
mod figures;
mod golden;
mod host;
mod report;
mod stages;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

pub(crate) use self::case::OpenedCase;
use self::report::{Kind, Report};
pub(crate) use self::stages::is_gated_on_devices;
use crate::device::{DeviceArgs, Model};
use crate::output;
use crate::progress::Progress;
use crate::say::say;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Case folders (with a case.json) and folders in the layout of golden/host
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// What runs the model of a case
    #[arg(long, value_enum, default_value = "reference")]
    model: Model,
    #[command(flatten)]
    device: DeviceArgs,
    /// Write all rows to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl VerifyArgs {
    /// `folders` through the reference, and no JSON file.
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, model: Model::Reference, device: DeviceArgs::default(), json: None }
    }

    /// The same through the software device.
    pub(crate) fn on_device(self, device: DeviceArgs) -> Self {
        Self { model: Model::Device, device, ..self }
    }
}

/// Whether `dir` has the form of a folder that can be judged.
pub(crate) fn is_judged(dir: &Path) -> bool {
    kind(dir).is_some()
}

/// Whether `dir` is a case that runs in seconds: any but the full size.
pub(crate) fn is_small_case(dir: &Path) -> bool {
    matches!(kind(dir), Some(Kind::Case)) && case::is_small(dir)
}

fn kind(folder: &Path) -> Option<Kind> {
    if folder.join(case::CASE_FILE).is_file() {
        return Some(Kind::Case);
    }
    host::is_host_folder(folder).then_some(Kind::Host)
}

/// Judges every folder, prints its table, and fails if one of them does.
///
/// # Errors
/// If a folder fails, cannot be judged, or the JSON file cannot be written.
pub(crate) fn run(args: &VerifyArgs) -> Result<()> {
    if let Some(path) = &args.json {
        output::check(path)?;
    }
    let mut reports = Vec::new();
    for folder in &args.folders {
        if folder.is_file() {
            // `golden/tiny/*` also names the notes beside the cases.
            say!("{}\n  left out: a file, not a folder", folder.display());
            continue;
        }
        let report = judge(folder, args);
        say!("{}", report.table());
        reports.push(report);
    }
    let failed = reports.iter().filter(|r| !r.passed()).count();
    say!("{} of {} folders passed", reports.len() - failed, reports.len());
    if let Some(path) = &args.json {
        let text = serde_json::to_vec_pretty(&reports).context("report")?;
        output::write(path, &text)?;
    }
    if reports.is_empty() {
        bail!("no folder to judge");
    }
    if failed > 0 {
        bail!("{failed} of {} folders failed", reports.len());
    }
    Ok(())
}

/// Judges one folder.
fn judge(folder: &Path, args: &VerifyArgs) -> Report {
    let start = Instant::now();
    let progress = Arc::new(Progress::new());
    let kind = kind(folder);
    let outcome = match kind {
        Some(Kind::Case) => case::rows(folder, args, &progress),
        Some(Kind::Host) => host::rows(folder),
        None if !folder.exists() => Err(anyhow!("no such folder")),
        None => Err(anyhow!("neither {} nor the files of golden/host are in it", case::CASE_FILE)),
    };
    Report::new(folder, kind, outcome, start.elapsed())
}
