//! `cargo xtask demo`: the server with a model, its demo observation predicted and judged, the result shown and drawn, and
//! the page left open until Ctrl-C.

mod answer;
mod plot;
mod served;

use std::net::TcpListener;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use gr00t_host::checkpoint::WeightsSpec;
use gr00t_model::DtypePolicy;
use gr00t_serve::options::{Environment, ServeOptions, parse};
use gr00t_serve::tools::{SmokeOptions, smoke};
use serde_json::Value;

use crate::output;
use crate::picture;
use crate::say::say;
use crate::weights::WeightsArgs;
use crate::workspace;
use answer::Answer;
use served::Served;

/// The demo's observation: a rendered scene and made-up joint angles.
pub(crate) const OBSERVATION: &str = "gr00t-serve/assets/demo/observation.json";
/// The port that is taken where it is free, so that the page has the same address every time.
const USUAL_PORT: u16 = 8000;
const HOST: &str = "127.0.0.1";

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    /// Data types of the device's weights: bf16, mixed or mixed_dit
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = crate::device::policy)]
    policy: DtypePolicy,
    /// Threads of the software device; one per CPU by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Cameras and keys: a built-in data config or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "fourier_gr1_arms_only")]
    data_config: String,
    /// Port of the server; 8000 by default, or a free one where that is taken
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Exit after showing the result
    #[arg(long)]
    once: bool,
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value_os_t = default_picture())]
    plot: PathBuf,
}

fn default_picture() -> PathBuf {
    workspace::root().join("out/demo.png")
}

/// Serves, predicts over HTTP, judges, shows, draws; then waits for Ctrl-C.
///
/// # Errors
/// If the server does not become ready, the answer is not what the fp32 reference gives, or the picture cannot be written.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    picture::create_folder_of(&args.plot)?;
    output::check(&args.plot)?;
    let listener = listen(args.port)?;
    let port = listener.local_addr()?.port();
    let url = format!("http://{HOST}:{port}");
    say!("{}", args.intent());
    let mut server = Served::start(args.serve_options(port)?, listener, &url)?;
    let shown = show(args, &mut server, &url);
    if !args.once && shown.is_ok() {
        say!("\npage         {url}/?run\nCtrl-C ends the server");
        return server.wait();
    }
    server.stop();
    shown
}

/// Predicts, judges, shows and draws. What is wrong with the answer is an error after all was shown.
fn show(args: &DemoArgs, server: &mut Served, url: &str) -> Result<()> {
    server.until_ready()?;
    let info = server.get("/info")?;
    let demo = server.get("/demo")?;
    let smoke_options = SmokeOptions { url: url.to_owned(), wait: 0, out: None };
    let judged = server.unless_ended(smoke(&smoke_options))?;
    // what is shown is a later request's time: the first ones touch the memory
    let reply = server.post("/predict", &demo["request"])?;
    let answer = Answer::read(&reply, &demo["expected"]["actions"])?;
    answer.print_head(&info, &judged);
    answer.print_actions();
    let title = format!(
        "{}: {} (dashed: fp32 reference)",
        info["data_config"].as_str().unwrap_or_default(),
        answer.instruction
    );
    plot::write(&answer.chunk, &answer.expected, &title, &args.plot)?;
    say!("\npicture      {}", args.plot.display());
    if judged["pass"] != Value::Bool(true) {
        bail!("the served answer is not the reference's: {}", judged["problems"]);
    }
    Ok(())
}

impl DemoArgs {
    /// Whether the weights are made up. What cannot be read is not; the server says what is wrong with it.
    fn is_synthetic(&self) -> bool {
        matches!(self.weights.weights.parse(), Ok(WeightsSpec::Synthetic { .. }))
    }

    /// Whether the model is the miniature of GR00T.
    fn is_mini(&self) -> bool {
        self.is_synthetic() && self.weights.config.as_deref().is_none_or(|config| config == "mini")
    }

    /// What is about to run, and how long that takes.
    fn intent(&self) -> String {
        let (what, time) = if self.is_mini() {
            ("a miniature of GR00T N1.5", "ready in seconds; --config n1.5 is the full size")
        } else {
            (
                "GR00T N1.5",
                "the first start takes minutes, most of them for packing the weights and for the fp32 reference; both are kept",
            )
        };
        format!("serving {what}, weights {}: {time}", self.weights.weights)
    }

    /// The server's options, as `gr00t-serve` would read them.
    fn serve_options(&self, port: u16) -> Result<ServeOptions> {
        let mut words = vec![
            "gr00t-serve".to_owned(),
            format!("--host={HOST}"),
            format!("--port={port}"),
            format!("--weights={}", self.weights.weights),
            format!("--policy={}", self.policy),
            format!("--data-config={}", self.data_config),
            format!("--download={}", self.weights.download),
        ];
        let mini = self.is_mini().then(|| "mini".to_owned());
        words.extend(self.weights.config.clone().or(mini).map(|config| format!("--config={config}")));
        words.extend(self.threads.map(|threads| format!("--threads={threads}")));
        // the cache's place alone: a token or limits in the environment are for servers that people run
        let cache = "GR00T_TT_CACHE";
        let environment: Environment =
            std::env::var(cache).ok().map(|value| (cache.to_owned(), value)).into_iter().collect();
        Ok(parse(words.into_iter().map(Into::into), &environment)?.serve)
    }
}

/// On the port asked for, else on the usual one, else on any that is free. Taken before the server starts and handed to it,
/// so that another server on that port is never taken for ours.
fn listen(wanted: Option<u16>) -> Result<TcpListener> {
    let bind = |port| TcpListener::bind((HOST, port)).with_context(|| format!("listen on {HOST}:{port}"));
    match wanted {
        Some(port) => bind(port),
        None => bind(USUAL_PORT).or_else(|_| bind(0)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        demo: DemoArgs,
    }

    fn demo(words: &[&str]) -> DemoArgs {
        Line::try_parse_from([&["demo"], words].concat()).unwrap().demo
    }

    #[test]
    fn made_up_weights_are_mini_unless_another_size_is_asked_for() {
        assert!(demo(&[]).is_mini());
        assert!(demo(&["--weights", "synthetic:7", "--config", "mini"]).is_mini());
        assert!(!demo(&["--config", "n1.5"]).is_mini());
        for weights in ["synthetic_v2/", "synthetic_v2/model.safetensors", "owner/name"] {
            assert!(!demo(&["--weights", weights]).is_mini(), "{weights}");
        }
    }
}
