//! The table of `docs/data-configs.md` is that of the built-in configs; `UPDATE_DOCS=1` writes it anew.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write;
use std::path::Path;

use gr00t_host::embodiment::{DataConfig, KeySpec, NormalizationMode, Provenance, provenance};

const BEGIN: &str = "<!-- built-in configs: begin -->\n";
const END: &str = "<!-- built-in configs: end -->";

/// `left_arm sin_cos`, `eef_rotation → rotation_6d`; a key alone passes as it is.
fn key(spec: &KeySpec) -> String {
    let mut text = spec.key.clone();
    if let Some(rotation) = spec.rotation {
        write!(text, " → {rotation}").unwrap();
    }
    if spec.mode != NormalizationMode::None {
        write!(text, " {}", spec.mode).unwrap();
    }
    text
}

fn keys(specs: &[KeySpec]) -> String {
    specs.iter().map(key).collect::<Vec<_>>().join(", ")
}

fn table() -> String {
    let mut table = String::from(
        "| name | tag | cameras | state | action | instruction | checked |\n|---|---|---|---|---|---|---|\n",
    );
    for name in DataConfig::builtin_names() {
        let config = DataConfig::builtin(name).unwrap();
        let checked = match provenance(name) {
            Some(Provenance::NvidiaGolden) => "results",
            _ => "table",
        };
        writeln!(
            table,
            "| `{name}` | {} | {} | {} | {} | `{}` | {checked} |",
            config.embodiment.name(),
            config.video_keys.join(", "),
            keys(&config.state_keys),
            keys(&config.action_keys),
            config.language_key
        )
        .unwrap();
    }
    table
}

#[test]
fn the_page_lists_every_built_in_config_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/data-configs.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (written, tail) = rest.split_once(END).unwrap();
    let wanted = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // in one move: the other test reads the page meanwhile
        let new = path.with_extension("new");
        std::fs::write(&new, format!("{head}{BEGIN}{wanted}{END}{tail}")).unwrap();
        std::fs::rename(new, &path).unwrap();
        return;
    }
    assert_eq!(written, wanted, "docs/data-configs.md is not up to date: run this test with UPDATE_DOCS=1");
}

#[test]
fn the_pages_example_is_a_config() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/data-configs.md");
    let page = std::fs::read_to_string(path).unwrap();
    let toml = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let config = DataConfig::from_toml("example", toml).unwrap();
    assert_eq!(config.name, "my_arm");
    assert_eq!(config.state_keys[1].key, "eef_rotation");
    assert_eq!(config.embodiment_id, Some(31));
}
