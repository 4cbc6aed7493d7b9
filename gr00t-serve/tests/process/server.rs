//! A run of the program, and its log line by line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_gr00t-serve");
/// The small model.
pub(crate) const MINI: [&str; 4] = ["--weights", "synthetic", "--config", "mini"];
pub(crate) const READY: &str = "Application startup complete";
/// Only a broken server makes a test wait this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// `program` without any variable that the server reads, and without HOME.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        if ["GR00T_", "HF_", "TT_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME").stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A running server, killed if a test ends early.
pub(crate) struct Server {
    pub(crate) process: Child,
    reader: BufReader<ChildStderr>,
    pub(crate) log: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// The small model with further flags.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = command(PROGRAM);
        command.args(MINI).args(["--port", "0", "--warmup-runs", "1"]).args(flags);
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let reader = BufReader::new(process.stderr.take().unwrap());
        Self { process, reader, log: Vec::new() }
    }

    /// Reads the log until a line with `word`, which is returned.
    pub(crate) fn until(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.reader.read_line(&mut line).unwrap(),
                0,
                "no {word}, ended early: {:#?}",
                self.log
            );
            self.log.push(line.trim_end().to_owned());
            if line.contains(word) {
                return line;
            }
        }
    }

    /// Where `protocol` (HTTP, ZeroMQ, WebSocket) listens, read from its line of the log.
    pub(crate) fn address(&mut self, protocol: &str) -> SocketAddr {
        let line = self.until(&format!("{protocol} on "));
        line.trim().rsplit("://").next().unwrap().parse().unwrap()
    }

    /// Warm, and where HTTP is.
    pub(crate) fn ready(&mut self) -> SocketAddr {
        let address = self.address("HTTP");
        self.until(READY);
        address
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Lets the rest of the log go, so that it never fills its pipe.
    pub(crate) fn drain(&self) {
        let mut log = std::fs::File::from(self.reader.get_ref().as_fd().try_clone_to_owned().unwrap());
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    }

    /// The rest of the log, and how the process ended.
    pub(crate) fn end(mut self) -> (String, ExitStatus) {
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).unwrap();
        (rest, self.process.wait().unwrap())
    }

    /// Told to stop.
    pub(crate) fn stop(self) -> (String, ExitStatus) {
        signal("-TERM", self.id());
        self.end()
    }
}

pub(crate) fn signal(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Status and body of a GET.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Standard output of a run that must succeed.
pub(crate) fn output(arguments: &[&str], environment: &[(&str, &str)]) -> (String, String) {
    let output = command(PROGRAM).args(arguments).envs(environment.iter().copied()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// Standard error of a run that must fail, and its exit code.
pub(crate) fn refusal(arguments: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let output = command(PROGRAM).args(arguments).envs(environment.iter().copied()).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}
