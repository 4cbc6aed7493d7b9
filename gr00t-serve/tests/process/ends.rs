//! How it ends: told to stop in each phase of its life, killed, as the first process of its namespace.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{MINI, PROGRAM, READY, Server, command, get, signal};

/// Well beyond what an end takes, and well below the launchers' patience of 120 s.
const SOON: Duration = Duration::from_secs(30);
/// What the log says of work that did not stop when it was told to, and was left behind.
const STILL_RUNNING: &str = "still running";

#[test]
fn told_to_stop_in_any_phase_it_closes_the_device_and_exits_0() {
    for word in ["Started server", "Loading weights: ", "Model loaded", "Warmup 1/1000", "Warmup 9/1000"] {
        let mut server = Server::start(&["--warmup-runs", "1000"]);
        server.until(word);
        let told = Instant::now();
        let (rest, status) = server.stop();
        assert!(status.success(), "{word}: {status}: {rest}");
        assert!(told.elapsed() < SOON, "{word}: {:?}", told.elapsed());
        assert!(rest.contains("Shutting down") && !rest.contains(READY), "{word}: {rest}");
        assert!(
            rest.contains("Closing device") || rest.contains("before a device was opened"),
            "{word}: {rest}"
        );
        assert!(!rest.contains(STILL_RUNNING), "{word}: not cut short: {rest}");
    }
}

#[test]
fn told_to_stop_while_the_reference_runs_it_does_not_wait_for_it() {
    let mut server = Server::start(&["--warmup-runs", "1"]);
    server.until("Reference actions: computed");
    let (rest, status) = server.stop();
    assert!(status.success() && rest.contains("Closing device"), "{status}: {rest}");
    assert!(!rest.contains(STILL_RUNNING), "not cut short: {rest}");
}

#[test]
fn half_requests_do_not_keep_it() {
    let flags = ["--port", "0", "--zmq-port", "0", "--websocket-port", "0", "--warmup-runs", "1"];
    let mut run = command(PROGRAM);
    run.args(MINI).args(flags);
    let mut server = Server::of(run);
    let addresses = ["HTTP", "ZeroMQ", "WebSocket"].map(|protocol| server.address(protocol));
    server.until(READY);
    let half = |address| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut stream, b"G").unwrap();
        stream
    };
    let silent = addresses.map(|address| std::net::TcpStream::connect(address).unwrap());
    let halves = addresses.map(half);
    let told = Instant::now();
    let (rest, status) = server.stop();
    // the ports wait at the same time, and for less than the 30 s that a request may take to arrive
    assert!(told.elapsed() < Duration::from_secs(20), "{:?}", told.elapsed());
    assert!(status.success() && rest.contains("Closing device"), "{status}: {rest}");
    assert!(!rest.contains(STILL_RUNNING), "not cut short: {rest}");
    drop((silent, halves));
}

#[test]
fn killed_it_starts_again_on_the_same_ports() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    // free ones in the first round, the same ones after
    let mut ports = ["0".to_owned(), "0".to_owned(), "0".to_owned()];
    for round in 0..3 {
        let [http, zmq, websocket] = &ports;
        let flags = ["--port", http, "--zmq-port", zmq, "--websocket-port", websocket, "--cache-dir", cache];
        let mut server = Server::start(&flags);
        let addresses = ["HTTP", "ZeroMQ", "WebSocket"].map(|protocol| server.address(protocol));
        server.until(READY);
        // open connections, so that the ports are left in the state that only SO_REUSEADDR gets over
        let open = addresses.map(|address| std::net::TcpStream::connect(address).unwrap());
        assert_eq!(get(addresses[0], "/health").0, 200, "round {round}");
        ports = addresses.map(|address| address.port().to_string());
        signal("-KILL", server.id());
        let (_, status) = server.end();
        assert!(!status.success());
        drop(open);
    }
}

#[test]
fn as_the_first_process_of_its_namespace_it_obeys_sigterm() {
    let works = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: unshare --pid is not permitted here");
        return;
    }
    let mut unshare = command("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", PROGRAM]).args(MINI).args(["--port", "0"]);
    let mut server = Server::of(unshare);
    assert!(server.until("Started server process").contains("[1]"));
    server.until(READY);
    let children = format!("/proc/{0}/task/{0}/children", server.id());
    let child = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    signal("-TERM", child);
    let (rest, status) = server.end();
    assert!(status.success() && rest.contains("Closing device"), "{status}: {rest}");
}
