//! The stock Python packages against the servers: `tests/python/wire_clients.py`, in the venv of `tests/rig/venv.rs`.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::rig::{INSTRUCTION, Rig, expected};
use crate::venv;

/// Seed of the actions that every protocol must give.
const SEED: u64 = 7;

#[test]
fn stock_python_clients_get_the_actions_of_the_rust_api() {
    let Some(python) = venv::python() else { return };
    let rig = Rig::new();
    let groups: Vec<_> = expected(SEED)
        .groups
        .iter()
        .map(|group| {
            let bits: Vec<u32> = group.values.iter().map(|value| value.to_bits()).collect();
            json!({ "key": group.key, "dim": group.dim, "bits": bits })
        })
        .collect();
    let case = json!({ "seed": SEED, "instruction": INSTRUCTION, "horizon": 16, "groups": groups });
    let output = Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/wire_clients.py"))
        .args(["--zmq-port", &rig.zmq.port().to_string()])
        .args(["--websocket-port", &rig.websocket.port().to_string()])
        .args(["--http-url", &format!("http://{}", rig.http)])
        .args(["--case", &case.to_string()])
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{stdout}");
    assert!(output.status.success(), "{stderr}");
    for protocol in ["zmq", "websocket", "http"] {
        assert!(stdout.contains(&format!("{protocol} ok")), "{stdout}");
    }
}
