//! Two replicas behind nginx, as `packaging/nginx.conf` has it: one is killed and one is told to stop under load, and no client sees it.
//!
//! Skipped with a message where nginx is not installed.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(dead_code, reason = "only a part is used")]
#[path = "process/server.rs"]
mod server;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Server, get};

/// Only a broken proxy or server makes the test wait this long.
const PATIENCE: Duration = Duration::from_mins(2);
/// Clients that ask all the time.
const CLIENTS: usize = 4;
/// Answers that are waited for before and after each loss.
const ANSWERS: usize = 20;

/// nginx on a folder of its own, killed at the end.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // its workers end with it
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

impl Nginx {
    /// Our configuration with these ports.
    fn start(folder: &Path, listen: SocketAddr, replicas: [SocketAddr; 2]) -> Self {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/nginx.conf");
        let mut config = std::fs::read_to_string(shipped).unwrap();
        let ours = ["127.0.0.1:8000", "127.0.0.1:8001", "127.0.0.1:8002"];
        for (from, to) in ours.into_iter().zip([listen, replicas[0], replicas[1]]) {
            assert_eq!(config.matches(from).count(), 1, "{from}");
            config = config.replace(from, &format!("@{to}"));
        }
        let file = folder.join("nginx.conf");
        std::fs::write(&file, config.replace('@', "")).unwrap();
        let child = Command::new("nginx")
            .arg("-p")
            .arg(folder)
            .arg("-c")
            .arg(&file)
            .args(["-e", "error.log", "-g", "daemon off;"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

/// Status and body of a POST on a connection of its own, as the page at `address` sends it.
fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Ok((status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())))
}

/// Looks until `what` holds.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What the clients saw.
#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    answers: AtomicUsize,
    lost: Mutex<Vec<String>>,
}

impl Seen {
    /// Asks until told to stop; every answer must be the one that is wanted.
    fn ask(&self, proxy: SocketAddr, body: &str, wanted: &Value) {
        while !self.stop.load(Ordering::Relaxed) {
            let problem = match post(proxy, "/predict", body) {
                Ok((200, text)) => {
                    let actions =
                        serde_json::from_str::<Value>(&text).map(|answer| answer["actions"].clone());
                    (actions.ok().as_ref() != Some(wanted)).then(|| format!("other actions: {text}"))
                }
                Ok((status, text)) => Some(format!("{status}: {text}")),
                Err(error) => Some(error.to_string()),
            };
            self.lost.lock().unwrap().extend(problem);
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for that many more answers.
    fn more(&self, count: usize) {
        let from = self.answers.load(Ordering::Relaxed);
        wait("answers through the proxy", || self.answers.load(Ordering::Relaxed) >= from + count);
    }
}

/// Stops the clients also where the test fails, so that their threads end.
struct Stopped<'a>(&'a Seen);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_request_is_lost_when_a_replica_is_killed_or_told_to_stop() {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        println!("skipped: nginx is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Server::start(&["--threads", "1"]), Server::start(&["--threads", "1"]));
    let replicas = [first.ready(), second.ready()];
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let _nginx = Nginx::start(folder.path(), proxy, replicas);
    wait("nginx listens", || TcpStream::connect(proxy).is_ok());

    let demo: Value = serde_json::from_str(&get(replicas[0], "/demo").1).unwrap();
    let body = demo["request"].to_string();
    let answer: Value = serde_json::from_str(&post(replicas[0], "/predict", &body).unwrap().1).unwrap();
    let wanted = &answer["actions"];
    assert!(wanted.is_object(), "{answer}");

    let seen = Seen::default();
    let third = std::thread::scope(|scope| {
        let _stopped = Stopped(&seen);
        for _ in 0..CLIENTS {
            scope.spawn(|| seen.ask(proxy, &body, wanted));
        }
        seen.more(ANSWERS);
        // no farewell: SIGKILL
        drop(first);
        seen.more(ANSWERS);

        // another takes its place
        let port = replicas[0].port().to_string();
        let mut third = Server::start(&["--threads", "1", "--port", &port]);
        third.ready();
        // what the starting replica refused has been answered by the other
        seen.more(2 * CLIENTS);
        let (log, status) = second.stop();
        assert!(status.success(), "{log}");
        seen.more(ANSWERS);
        third
    });
    drop(third);
    let lost = seen.lost.into_inner().unwrap();
    let log = std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
    assert!(
        lost.is_empty(),
        "{} lost of {}: {:?}\n{log}",
        lost.len(),
        seen.answers.into_inner(),
        lost.first()
    );
}
