//! How `--help` is laid out: flags in groups, and examples below them.

use clap::{CommandFactory, FromArgMatches};

use super::Cli;

/// Heading, and the flags below it.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Listening",
        &["host", "port", "zmq_port", "websocket_port", "allow_kill", "api_token_file", "allow_origin"],
    ),
    (
        "Model",
        &[
            "weights",
            "config",
            "download",
            "metadata",
            "data_config",
            "embodiment",
            "tokenizer",
            "policy",
            "denoising_steps",
        ],
    ),
    (
        "Device",
        &[
            "device",
            "device_id",
            "threads",
            "trace_layout",
            "trace_region_size",
            "l1_small_size",
            "cache_dir",
        ],
    ),
    (
        "Requests",
        &["seed", "resize", "clip_actions", "queue", "deadline_ms", "max_body_mib", "max_connections"],
    ),
    ("Start", &["warmup_runs", "warmup_pcc_min", "log_level"]),
    ("Instead of serving", &["check", "print_config"]),
];

const EXAMPLES: &str = "\
Examples:
  gr00t-serve --weights synthetic --config mini
      a small model with made-up weights, to try clients; the page is at http://127.0.0.1:8000/
  gr00t-serve --weights nvidia/GR00T-N1.5-3B --zmq-port 5555
      NVIDIA's weights from the local Hugging Face cache, for NVIDIA's clients too
  gr00t-serve smoke --url http://127.0.0.1:8000
      is what the server answers what the fp32 reference gives?

Flags have environment variables too, most of them GR00T_ and the flag's name in capitals (GR00T_DATA_CONFIG); flags win.";

/// The command line, laid out.
pub(super) fn command() -> clap::Command {
    let heading =
        |name: &str| GROUPS.iter().find(|(_, flags)| flags.contains(&name)).map(|(heading, _)| *heading);
    Cli::command()
        .mut_args(|arg| match heading(arg.get_id().as_str()) {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        })
        // a switch that may be given a value, for the environment's sake
        .mut_args(|arg| {
            if is_switch(&arg) {
                arg.value_name("BOOL").hide_default_value(true).hide_possible_values(true)
            } else {
                arg
            }
        })
        .after_help(EXAMPLES)
}

fn is_switch(arg: &clap::Arg) -> bool {
    arg.get_default_values().first().is_some_and(|value| value == "false")
}

/// [`clap::Parser::try_parse_from`] of the command line as it is laid out here.
pub(super) fn try_parse_from<T>(words: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error>
where
    T: Into<std::ffi::OsString> + Clone,
{
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_group_and_every_group_only_flags() {
        let command = Cli::command();
        let mut flags: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, flags)| flags.iter().copied()).collect();
        flags.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(flags, grouped, "options/help.rs says which group a flag belongs to");
    }
}
