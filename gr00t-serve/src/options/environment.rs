//! Environment variables: those of the Python server and its launchers, and one for each flag but `--print-config`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::parse::ParseError;

/// Name → value of every variable that is set.
pub type Environment = BTreeMap<String, String>;

/// Variables that stand for a flag. Where two stand for the same, the later one wins.
pub const KNOWN_VARIABLES: [(&str, &str); 38] = [
    ("GR00T_HOST", "host"),
    ("GR00T_PORT", "port"),
    ("GR00T_WEIGHTS", "weights"),
    ("GR00T_WEIGHTS_DIR", "weights"),
    ("GR00T_CONFIG", "config"),
    ("GR00T_DOWNLOAD", "download"),
    ("GR00T_METADATA", "metadata"),
    ("GR00T_DATA_CONFIG", "data-config"),
    ("GR00T_EMBODIMENT", "embodiment"),
    ("GR00T_TOKENIZER_DIR_N15", "tokenizer"),
    ("GR00T_TOKENIZER_DIR", "tokenizer"),
    ("GR00T_POLICY", "policy"),
    ("GR00T_TRACE_LAYOUT", "trace-layout"),
    ("GR00T_DENOISING_STEPS", "denoising-steps"),
    ("GR00T_DEVICE", "device"),
    ("TT_DEVICE_ID", "device-id"),
    ("GR00T_TRACE_REGION_SIZE", "trace-region-size"),
    ("GR00T_L1_SMALL_SIZE", "l1-small-size"),
    ("GR00T_TORCH_THREADS", "threads"),
    ("GR00T_THREADS", "threads"),
    ("TT_DIT_CACHE_DIR", "cache-dir"),
    ("GR00T_TT_CACHE", "cache-dir"),
    ("GR00T_WARMUP_RUNS", "warmup-runs"),
    ("GR00T_WARMUP_PCC_MIN", "warmup-pcc-min"),
    ("GR00T_DEFAULT_SEED", "seed"),
    ("GR00T_QUEUE", "queue"),
    ("GR00T_DEADLINE_MS", "deadline-ms"),
    ("GR00T_MAX_BODY_MIB", "max-body-mib"),
    ("GR00T_MAX_CONNECTIONS", "max-connections"),
    ("GR00T_ZMQ_PORT", "zmq-port"),
    ("GR00T_WEBSOCKET_PORT", "websocket-port"),
    ("GR00T_ALLOW_KILL", "allow-kill"),
    ("GR00T_RESIZE", "resize"),
    ("GR00T_CLIP_ACTIONS", "clip-actions"),
    ("GR00T_API_TOKEN_FILE", "api-token-file"),
    ("GR00T_ALLOW_ORIGIN", "allow-origin"),
    ("GR00T_LOG_LEVEL", "log-level"),
    ("GR00T_CHECK", "check"),
];

/// Variables with the prefix `GR00T_` that stand for no flag.
const OTHERS: [&str; 6] = [
    "GR00T_VERSION",
    "GR00T_LAYOUT",
    "GR00T_API_TOKEN",
    "GR00T_PROJECT_ROOT",
    "GR00T_GOLDEN_ROOT",
    // read by the software device itself
    "GR00T_SOFT_ISA",
];
const PREFIX: &str = "GR00T_";
/// What launchers set beside those.
const MODEL: &str = "HF_MODEL";
const REVISION: &str = "TT_WEIGHTS_REVISION";
const MESH: &str = "TT_MESH_SHAPE";

/// The value of `name`; an empty one counts as none.
pub(super) fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The variables of this process.
///
/// # Errors
/// Those of them that are read here and are no text: they would be without effect, the token's among them.
pub fn environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Environment, ParseError> {
    let (mut set, mut problems) = (Environment::new(), Vec::new());
    for (name, value) in variables {
        match (name.to_str(), value.to_str()) {
            (Some(name), Some(value)) => {
                set.insert(name.to_owned(), value.to_owned());
            }
            _ if is_ours(&name.to_string_lossy()) => {
                problems.push(format!("{}: is not UTF-8", name.to_string_lossy()));
            }
            _ => {}
        }
    }
    if problems.is_empty() { Ok(set) } else { Err(ParseError::Values(problems)) }
}

/// Whether `name` is read here, or looks as if it should be.
fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
        || [MODEL, REVISION, MESH].contains(&name)
        || KNOWN_VARIABLES.iter().any(|(known, _)| *known == name)
}

/// Variables with our prefix that mean nothing: a misspelt one would be silently without effect.
pub(super) fn unknown(environment: &Environment) -> Vec<String> {
    let known =
        |name: &str| OTHERS.contains(&name) || KNOWN_VARIABLES.iter().any(|(known, _)| *known == name);
    environment.keys().filter(|name| name.starts_with(PREFIX) && !known(name)).cloned().collect()
}

/// What must have one value, or is without effect here.
///
/// # Errors
/// Every variable with a value that cannot be served.
pub(super) fn fixed(environment: &Environment) -> (Vec<String>, Vec<String>) {
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for (name, wanted) in [("GR00T_VERSION", "n15"), (MESH, "1x1")] {
        if let Some(got) = value(environment, name).filter(|got| *got != wanted) {
            problems.push(format!("{name}: got {got:?}, wanted {wanted}"));
        }
    }
    for name in ["GR00T_PROJECT_ROOT", "GR00T_GOLDEN_ROOT"] {
        if value(environment, name).is_some() {
            notes.push(format!("{name} is ignored: nothing here needs it"));
        }
    }
    (problems, notes)
}

/// The weights that a launcher names: `HF_MODEL` at `TT_WEIGHTS_REVISION`.
pub(super) fn launcher_weights(environment: &Environment, default_model: &str) -> Option<String> {
    let (model, revision) = (value(environment, MODEL), value(environment, REVISION));
    match (model, revision) {
        (Some(model), Some(revision)) if !model.contains('@') => Some(format!("{model}@{revision}")),
        (Some(model), _) => Some(model.to_owned()),
        (None, Some(revision)) => Some(format!("{default_model}@{revision}")),
        (None, None) => None,
    }
}
