//! Every client in `examples/` against the program on the mini model. The Python ones need the venv that
//! `tests/rig/venv.rs` describes, and say so where it is absent.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../examples/http_loop.rs"]
#[allow(dead_code, reason = "its main belongs to the example")]
mod http_loop;
#[path = "process/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;
#[path = "rig/venv.rs"]
mod venv;

use std::path::Path;
use std::process::Command;

use server::{READY, Server};

/// Steps that each example executes: 5 chunks, 8 of their 16 steps.
const STEPS: usize = 40;

#[test]
fn the_rust_loop_executes_its_steps() {
    let mut server = Server::start(&[]);
    let address = server.ready();
    assert_eq!(http_loop::run(&format!("http://{address}")).unwrap(), STEPS);
}

#[test]
fn the_python_loops_execute_their_steps() {
    let Some(python) = venv::python() else { return };
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = crate_dir.join("examples/python");
    let picture = crate_dir.join("assets/demo/ego_view.png");
    let mut server = Server::start(&["--zmq-port", "0", "--websocket-port", "0"]);
    let [http, zmq, websocket] = ["HTTP", "ZeroMQ", "WebSocket"].map(|protocol| server.address(protocol));
    server.until(READY);
    let (zmq, websocket) = (zmq.port().to_string(), websocket.port().to_string());
    let url = format!("http://{http}");
    let runs: [(&str, &[&str]); 4] = [
        ("zmq_loop.py", &["--port", &zmq]),
        ("openpi_loop.py", &["--port", &websocket]),
        ("http_loop.py", &["--url", &url]),
        ("http_loop.py", &["--url", &url, "--image", picture.to_str().unwrap()]),
    ];
    for (script, arguments) in runs {
        // nothing is left in the source tree
        let output =
            Command::new(&python).arg("-B").arg(folder.join(script)).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(
            said.contains("chunk 4: 16 steps") && said.contains(&format!("executed {STEPS} steps")),
            "{said}"
        );
    }
}
