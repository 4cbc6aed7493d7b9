//! The server under load: started on synthetic weights, asked over HTTP by one client and by several at once. It is the program
//! that cargo builds in this profile, and its own `bench` that asks.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use gr00t_host::ModelConfig;
use gr00t_serve::tools::Client;
use serde_json::Value;
use tt_soft::isa::ISA_VARIABLE;

use super::BenchArgs;
use super::report::Report;
use crate::full_size;
use crate::workspace;

/// Clients at once.
const CLIENTS: [usize; 3] = [1, 8, 64];
/// Unit of the counts of requests that were not answered with 200.
pub(super) const REQUESTS: &str = "requests";
/// What the server may take until it is ready.
const PATIENCE: Duration = Duration::from_mins(10);
/// Longest wait for the server's health.
const HEALTH_TIME: Duration = Duration::from_secs(5);
/// Between two looks at a server that starts.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Measures what is asked for.
pub(super) fn run(args: &BenchArgs, report: &mut Report) -> Result<()> {
    if !report.wants_some("server/") {
        return Ok(());
    }
    let _alone = full_size::alone(&ModelConfig::preset(&args.config)?)?;
    build()?;
    let program = program()?;
    // A port that was free a moment ago; the server ends with an error if another program takes it.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = Server::start(args, &program, port)?;
    let url = format!("http://127.0.0.1:{port}");
    server.until_ready(&Client::new(&url, HEALTH_TIME))?;
    let case = format!("{}/{}", args.device.policy, args.config);
    for clients in CLIENTS {
        let figures = ask(&program, &url, args.reps, clients);
        server.still_there()?;
        let figures = figures?;
        add(report, &figures, &case, clients)?;
    }
    drop(server);
    Ok(())
}

/// The rows of one number of clients.
///
/// # Errors
/// If figures are missing, or requests failed: those that the bound of the queue refuses (429) are counted and no failure.
fn add(report: &mut Report, figures: &Value, case: &str, clients: usize) -> Result<()> {
    let plural = if clients == 1 { "client" } else { "clients" };
    let name = |what: &str| format!("server/{what}/{case}/{clients} {plural}");
    let number = |value: &Value, what: &str| {
        value[what].as_f64().with_context(|| format!("gr00t-serve bench has no {what}, wanted a number"))
    };
    let [ok, overloaded, failed] = ["ok", "overloaded", "failed"].map(|what| number(figures, what));
    let (ok, failed) = (ok?, failed?);
    // the time outside of encode, device and decode, where no other request is waited for
    let parts = if clients == 1 { &["wall", "overhead"][..] } else { &["wall"] };
    for part in parts.iter().filter(|_| ok > 0.0) {
        let of = |what: &str| number(&figures["parts_ms"][part], what);
        report.figures(name(part), "ms", [of("median")?, of("p95")?, of("p99")?, of("max")?], ok as usize);
    }
    report.values(name("throughput"), "1/s", &[number(figures, "throughput_per_s")?]);
    report.values(name("overloaded"), REQUESTS, &[overloaded?]);
    report.values(name("failed"), REQUESTS, &[failed]);
    if ok == 0.0 || failed > 0.0 {
        bail!("{}: {ok} requests were answered, {failed} failed", name("failed"));
    }
    Ok(())
}

/// Builds the server in the profile of this program.
fn build() -> Result<()> {
    let mut command = Command::new(workspace::cargo());
    command.current_dir(workspace::root()).args(["build", "-p", "gr00t-serve"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    eprintln!("building gr00t-serve, which server/ asks (--without server/ leaves it out)");
    let status = command.status().context("cargo build -p gr00t-serve")?;
    if status.success() { Ok(()) } else { bail!("cargo build -p gr00t-serve failed ({status})") }
}

/// The server beside this program.
fn program() -> Result<std::path::PathBuf> {
    let own = std::env::current_exe().context("this program's own path")?;
    let program = own.with_file_name(format!("gr00t-serve{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() { Ok(program) } else { bail!("{}: no such program", program.display()) }
}

/// A server that ends with this value.
struct Server(Child);

impl Server {
    fn start(args: &BenchArgs, program: &Path, port: u16) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["--weights", "synthetic", "--config", &args.config, "--port", &port.to_string()]);
        command.args(["--policy", args.device.policy.name(), "--log-level", "error", "--cache-dir", "off"]);
        if let Some(threads) = args.device.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        if let Some(isa) = args.device.isa {
            command.env(ISA_VARIABLE, isa.name());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| program.display().to_string())?))
    }

    /// Waits until the model is warm.
    ///
    /// # Errors
    /// If the server ends instead, or takes too long.
    fn until_ready(&mut self, client: &Client) -> Result<()> {
        let started = Instant::now();
        loop {
            self.still_there()?;
            // nobody listens in the first moments
            if client.get("/health").is_ok_and(|(status, health)| status == 200 && health["status"] == "ok") {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                bail!("the server is not ready after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn still_there(&mut self) -> Result<()> {
        match self.0.try_wait().context("gr00t-serve")? {
            Some(status) => bail!("gr00t-serve ended ({status})"),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The report of the server's own `bench`.
fn ask(program: &Path, url: &str, reps: usize, clients: usize) -> Result<Value> {
    let output = Command::new(program)
        .args(["bench", "--url", url, "--warmup", "3"])
        .args(["--reps", &reps.max(1).to_string(), "--concurrency", &clients.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("gr00t-serve bench")?;
    if !output.status.success() {
        bail!("gr00t-serve bench failed ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("what gr00t-serve bench says")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::machine::Machine;
    use super::*;

    #[test]
    fn refused_requests_are_counted_and_failed_ones_are_an_error() {
        let mut report = Report::new(Machine::for_tests(), None, None);
        let times = json!({"median": 2.0, "p95": 3.0, "p99": 4.0, "max": 5.0});
        let parts = json!({"wall": times, "overhead": times});
        let mut figures =
            json!({"ok": 8, "overloaded": 2, "failed": 0, "throughput_per_s": 9.5, "parts_ms": parts});
        add(&mut report, &figures, "bf16/mini", 64).unwrap();
        add(&mut report, &figures, "bf16/mini", 1).unwrap();
        let rows: Vec<(&str, f64)> =
            report.results().results.iter().map(|row| (row.name.as_str(), row.median)).collect();
        assert!(rows.contains(&("server/overloaded/bf16/mini/64 clients", 2.0)), "{rows:?}");
        assert!(rows.contains(&("server/overhead/bf16/mini/1 client", 2.0)), "{rows:?}");
        assert_eq!(rows.len(), 9);
        figures["failed"] = 1.into();
        let error = add(&mut report, &figures, "bf16/mini", 8).unwrap_err().to_string();
        assert_eq!(error, "server/failed/bf16/mini/8 clients: 8 requests were answered, 1 failed");
        // what was answered is kept
        assert_eq!(report.results().results.len(), 13);
        assert!(add(&mut report, &json!({}), "bf16/mini", 8).is_err());
    }

    #[test]
    fn a_server_that_ends_is_not_waited_for() {
        let child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        // nothing listens on a port that was never bound
        let client = Client::new("http://127.0.0.1:1", HEALTH_TIME);
        let error = Server(child).until_ready(&client).unwrap_err().to_string();
        assert_eq!(error, "gr00t-serve ended (exit status: 3)");
    }
}
