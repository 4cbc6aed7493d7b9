//! The files of `packaging/` against the server: every flag, variable, path and port that they name exists, and what they copy is there.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gr00t_host::checkpoint::GR00T_N1_5_3B;
use gr00t_serve::options::{Cli, Environment, parse};
use serde_json::Value;

const PORT: u16 = 8000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join("packaging").join(name)).unwrap()
}

fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// Flags and variables as the server understands them, or the test fails with its own message.
fn understood(command: &[&str], environment: &[(&str, &str)]) -> Cli {
    let environment: Environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    parse(command.iter().map(OsString::from), &environment).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Routes that anyone may ask, from the router's own source, so that a renamed one is noticed here.
fn is_route(path: &str) -> bool {
    let router = include_str!("../src/http/mod.rs");
    router.contains(&format!(".route(\"{path}\""))
}

/// Instructions of a Dockerfile, continuation lines joined.
fn instructions(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn what_the_dockerfile_copies_is_there_and_nothing_of_the_workspace_is_left_out() {
    let text = read("Dockerfile");
    let (found, mut copied) = (instructions(&text), Vec::new());
    for instruction in found.iter().filter(|i| i[0] == "COPY") {
        if instruction.iter().any(|word| word.starts_with("--from=")) {
            continue;
        }
        let sources: Vec<&String> = instruction[1..].iter().filter(|word| !word.starts_with("--")).collect();
        for source in &sources[..sources.len() - 1] {
            assert!(root().join(source).exists(), "COPY {source}: no such file");
            copied.push(source.as_str());
        }
    }
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    for member in members.split(',').map(|m| m.trim().trim_matches('"')).filter(|m| !m.is_empty()) {
        assert!(copied.contains(&member), "the workspace has {member}, which the image's build does not");
    }
    let ignored = read("Dockerfile.dockerignore");
    for source in copied {
        assert!(!ignored.lines().any(|line| line == source), "{source} is copied and ignored");
    }
}

#[test]
fn the_image_runs_the_server_as_nobody_on_its_port() {
    let text = read("Dockerfile");
    let found = instructions(&text);
    let last = |name: &str| {
        let position = found.iter().rposition(|i| i[0] == name).unwrap_or_else(|| panic!("no {name}"));
        found[position][1..].join(" ")
    };
    let user = last("USER");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "USER {user}");
    let entry: Vec<String> = serde_json::from_str(&last("ENTRYPOINT")).unwrap();
    let variables = last("ENV");
    let variables: Vec<(&str, &str)> = variables.split(' ').filter_map(|pair| pair.split_once('=')).collect();
    let cli = understood(&entry.iter().map(String::as_str).collect::<Vec<_>>(), &variables);
    assert!(cli.serve.host.is_unspecified());
    assert_eq!((cli.serve.port, last("EXPOSE")), (PORT, PORT.to_string()));
    let cache = cli.serve.cache_dir.unwrap();
    assert!(last("VOLUME").contains(&format!("{cache:?}")), "{cache:?}");
    let rust = found.iter().find(|i| i[0] == "FROM").unwrap();
    assert!(rust[1].contains(env!("CARGO_PKG_RUST_VERSION")), "{rust:?}");
}

#[test]
fn the_unit_starts_the_server() {
    let text = read("gr00t-serve.service");
    let value = |key: &str| {
        let prefix = format!("{key}=");
        text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no {key}"))
    };
    let command: Vec<&str> = value("ExecStart").split(' ').collect();
    let variables: Vec<(&str, &str)> =
        value("Environment").split(' ').filter_map(|pair| pair.split_once('=')).collect();
    let cli = understood(&command, &variables);
    assert!(cli.serve.host.is_loopback() && cli.serve.port == PORT);
    let writable = format!("/var/cache/{}", value("CacheDirectory"));
    assert!(variables.iter().all(|(_, path)| path.starts_with(&writable)), "{variables:?}");
    let grace: u128 = value("TimeoutStopSec").parse().unwrap();
    assert!(grace * 1000 > u128::from(cli.serve.deadline_ms), "{grace} s");

    // systemd wants a program that is there
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("gr00t-serve.service");
    std::fs::write(&unit, text.replace(command[0], env!("CARGO_BIN_EXE_gr00t-serve"))).unwrap();
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&unit).stdin(Stdio::null()).output()
    else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("gr00t-serve.service")).collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn kubernetes_asks_the_servers_own_routes_on_its_own_port() {
    let documents = yaml(&read("kubernetes.yaml"));
    let of_kind = |kind: &str| documents.iter().find(|d| d["kind"] == kind).unwrap();
    let deployment = &of_kind("Deployment")["spec"];
    assert!(deployment["replicas"].as_u64() >= Some(2));
    let template = &deployment["template"];
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], PORT);

    let probes =
        [("startupProbe", "/v1/models"), ("readinessProbe", "/v1/models"), ("livenessProbe", "/v1/models")];
    for (probe, path) in probes {
        let get = &container[probe]["httpGet"];
        assert_eq!((&get["path"], &get["port"]), (&path.into(), &"http".into()), "{probe}");
        assert!(is_route(path));
    }
    // a Service's variables would have the prefix of the server's own, which refuses those that it does not know
    assert_eq!(template["spec"]["enableServiceLinks"], false);
    let scrape = &template["metadata"]["annotations"];
    assert_eq!(scrape["prometheus.io/port"], PORT.to_string());
    assert!(is_route(scrape["prometheus.io/path"].as_str().unwrap()));

    let arguments = strings(&container["args"]);
    let command: Vec<&str> = std::iter::once("gr00t-serve").chain(arguments).collect();
    let variables = container["env"].as_array().unwrap().iter();
    let variables: Vec<(&str, &str)> =
        variables.map(|v| (v["name"].as_str().unwrap(), v["value"].as_str().unwrap())).collect();
    let cli = understood(&command, &variables);
    let mounts: Vec<&Value> = container["volumeMounts"].as_array().unwrap().iter().collect();
    let cache = cli.serve.cache_dir.unwrap();
    assert!(mounts.iter().any(|m| m["mountPath"].as_str() == cache.to_str() && m["readOnly"].is_null()));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    let grace = template["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace * 1000 > cli.serve.deadline_ms);

    let name = &of_kind("Service")["metadata"]["name"];
    let labels = &template["metadata"]["labels"];
    assert_eq!(&of_kind("Service")["spec"]["selector"], labels);
    assert_eq!(&deployment["selector"]["matchLabels"], labels);
    let backend = &of_kind("Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
    assert_eq!(&backend["name"], name);
    let retries =
        &of_kind("Ingress")["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-next-upstream"];
    assert!(read("nginx.conf").contains(&format!("proxy_next_upstream {};", retries.as_str().unwrap())));
}

/// Fields of each part of schema 5.1 (pydantic models that forbid others), as tt-model-manager documents them.
const FIELDS: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "schema",
            "repo",
            "name",
            "weights",
            "auxiliary_weights",
            "kind",
            "arch",
            "source",
            "image",
            "runtime",
            "serve",
            "serve_profiles",
            "default_profile",
            "verify",
            "card",
        ],
    ),
    ("/weights", &["repo", "revision", "allow_patterns", "ignore_patterns"]),
    ("/source", &["tt_metal", "code", "extra_code", "ubuntu", "python"]),
    ("/image", &["registry", "repository"]),
    ("/runtime", &["command", "ready_line", "packages", "lock"]),
    (
        "/serve",
        &[
            "port",
            "hardware",
            "mesh_device",
            "max_num_seqs",
            "block_size",
            "max_model_len",
            "capabilities",
            "additional_config",
            "env",
            "args",
            "server_timeout",
        ],
    ),
    (
        "/card",
        &[
            "description",
            "quickstart",
            "performance",
            "limitations",
            "risks",
            "architecture",
            "status",
            "intended_use",
            "out_of_scope_use",
            "usage",
            "licensing",
            "related",
            "license",
            "pipeline_tag",
            "base_model",
        ],
    ),
];

#[test]
fn the_manifest_is_schema_5_1_and_starts_the_server() {
    let [manifest] = &yaml(&read("tt-model.yaml"))[..] else { panic!("one document") };
    for (part, known) in FIELDS {
        for key in keys(manifest.pointer(part).unwrap()) {
            assert!(known.contains(&key), "{part}/{key}: no such field");
        }
    }
    assert_eq!((&manifest["schema"], &manifest["kind"]), (&"5.1".into(), &"http-server".into()));
    assert_eq!(
        (&manifest["serve"]["hardware"], &manifest["serve"]["mesh_device"]),
        (&"p150".into(), &"P150".into())
    );
    assert_eq!(manifest["arch"], "blackhole");
    let name = manifest["name"].as_str().unwrap();
    assert!(
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c)),
        "{name}"
    );
    assert!(!strings(&manifest["source"]["code"]).is_empty());
    assert!(["performance", "limitations"].iter().all(|field| manifest["card"][field].is_string()));

    let weights = format!(
        "{}@{}",
        manifest["weights"]["repo"].as_str().unwrap(),
        manifest["weights"]["revision"].as_str().unwrap()
    );
    assert_eq!(weights, GR00T_N1_5_3B);

    // placeholders as the launcher fills them in, for every profile
    let command: Vec<String> = strings(&manifest["runtime"]["command"])
        .into_iter()
        .map(|word| word.replace("{host}", "0.0.0.0").replace("{port}", "20000"))
        .collect();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let profiles = manifest["serve_profiles"].as_object().unwrap();
    assert!(profiles.contains_key(manifest["default_profile"].as_str().unwrap()));
    for (profile, over) in profiles {
        let mut variables = BTreeMap::new();
        for part in [&manifest["serve"]["env"], &over["env"]] {
            variables.extend(
                part.as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap())),
            );
        }
        let variables: Vec<(&str, &str)> = variables.into_iter().collect();
        let serve = understood(&command, &variables).serve;
        assert_eq!((serve.device.as_str(), serve.port), ("metal", 20000), "{profile}");
        assert_eq!(serve.weights.as_deref(), Some(weights.as_str()), "{profile}");
        let data_config = gr00t_host::embodiment::DataConfig::builtin(&serve.data_config.unwrap());
        assert!(data_config.is_ok(), "{profile}: {data_config:?}");
    }
    let ready = manifest["runtime"]["ready_line"].as_str().unwrap();
    assert!(include_str!("../src/life/mod.rs").contains(ready), "{ready}");
}
