//! The Python with the stock packages, in a venv made with
//! `python3 -m venv target/wire-venv && target/wire-venv/bin/pip install -r gr00t-serve/tests/python/requirements.txt`.

use std::path::{Path, PathBuf};

/// Names another Python.
const VARIABLE: &str = "GR00T_WIRE_PYTHON";

/// The Python; where it is absent, says so.
pub(crate) fn python() -> Option<PathBuf> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/wire-venv/bin/python");
    let python = std::env::var_os(VARIABLE).map_or_else(usual, PathBuf::from);
    if !python.is_file() {
        println!("skipped: {} is absent", python.display());
        return None;
    }
    Some(python)
}
