//! A folder in the layout of `golden/host`: what each part of the host pipeline gives, by NVIDIA's own code.

mod data_config;
mod images;
mod json;
mod noise;
mod prompts;
mod state_action;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::report::Row;

pub(super) use state_action::transcendental;

/// Judges one file of a folder.
type Judge = fn(&Path) -> Result<Vec<Row>>;

/// The files that a host folder may have, and who judges them. Each is judged on its own.
const PARTS: [(&str, Judge); 4] = [
    (images::FILE, images::rows),
    (prompts::FILE, prompts::rows),
    (prompts::MULTI_FILE, prompts::multi_rows),
    (state_action::FILE, state_action::rows),
];

/// Whether `dir` has a file of this layout.
pub(super) fn is_host_folder(dir: &Path) -> bool {
    PARTS.iter().any(|(file, _)| dir.join(file).is_file()) || dir.join("images").is_dir()
}

/// Judges all that `dir` holds.
///
/// # Errors
/// If it holds nothing. A file that cannot be read as what its name says is a failing row.
pub(super) fn rows(dir: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (file, judge) in PARTS {
        let path = dir.join(file);
        if path.exists() {
            rows.extend(kept(file, judge(&path)));
        } else if file == images::FILE && dir.join("images").is_dir() {
            rows.push(Row::fail(file, "missing beside the folder images"));
        }
    }
    if let Some(path) = noise_file(dir) {
        rows.extend(kept(noise::FILE, noise::rows(&path)));
    }
    if rows.is_empty() {
        bail!("nothing to judge");
    }
    Ok(rows)
}

/// The noise golden lies in the folder or beside it.
fn noise_file(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    [Some(dir.as_path()), dir.parent()]
        .into_iter()
        .flatten()
        .map(|d| d.join(noise::FILE))
        .find(|p| p.is_file())
}

fn kept(name: &str, outcome: Result<Vec<Row>>) -> Vec<Row> {
    match outcome {
        Ok(rows) if rows.is_empty() => vec![Row::fail(name, "holds nothing to judge")],
        Ok(rows) => rows,
        Err(error) => vec![Row::fail(name, format!("{error:#}"))],
    }
}
