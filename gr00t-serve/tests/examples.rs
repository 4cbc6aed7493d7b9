//! Every client in `examples/` against the program on the mini model. The Python ones need the venv that
//! `tests/wire_protocols/python.rs` describes, and say so where it is absent.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../examples/http_loop.rs"]
#[allow(dead_code, reason = "its main belongs to the example")]
mod http_loop;
#[path = "process/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::path::PathBuf;
use std::process::Command;

use server::Server;

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
    let crate_dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("GR00T_WIRE_PYTHON")
        .map_or_else(|| crate_dir.join("../target/wire-venv/bin/python"), PathBuf::from);
    if !python.is_file() {
        println!("skipped: {} is absent", python.display());
        return;
    }
    let folder = crate_dir.join("examples/python");
    let picture = crate_dir.join("assets/demo/ego_view.png");
    let mut server = Server::start(&["--zmq-port", "0", "--websocket-port", "0"]);
    let address = server.ready();
    let port = |line: &str, log: &[String]| {
        let line = log.iter().find(|logged| logged.contains(line)).unwrap();
        line.rsplit(':').next().unwrap().to_owned()
    };
    let (zmq, websocket) = (port("ZeroMQ on tcp://", &server.log), port("WebSocket on ws://", &server.log));
    let url = format!("http://{address}");
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
