//! House rules on every source file that a compiler does not know: heads, sizes, where `unsafe` may live, no
//! unfinished code, no traces of the machine it was written on.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file. Past it, split by idea.
const MAX_LINES: usize = 600;

/// The keyword, written so that this file does not hold it.
const UNSAFE: &str = concat!("un", "safe");

/// Crates that may hold code under that keyword.
const UNSAFE_CRATES: [&str; 2] = ["tt-sys", "tt-soft"];

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = ["target", ".git", "out", "corpus"];

/// Suffixes of text files that are looked at for machine traces.
const TEXT: [&str; 7] = ["rs", "toml", "md", "yml", "yaml", "sh", "json"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// All files below `dir` whose path satisfies `wanted`, sorted.
fn files(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_symlink() || SKIPPED.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(&path) {
            found.push(path);
        }
    }
    found
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension().is_some_and(|e| suffixes.iter().any(|s| e == *s))
}

/// Runs `check` on every Rust file and fails with all that it says.
fn on_every_source(check: impl Fn(&Path, &str) -> Vec<String>) {
    let root = root();
    let sources = files(&root, &|p| has_suffix(p, &["rs"]));
    assert!(sources.len() > FEWEST_FILES, "only {} source files found", sources.len());
    let mut problems = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap();
        problems.extend(check(name, &text).into_iter().map(|p| format!("{}: {p}", name.display())));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A walk that finds fewer files than there are crates went wrong.
const FEWEST_FILES: usize = 9;

#[test]
fn every_source_file_says_what_it_is() {
    on_every_source(|_, text| head_problems(text));
}

#[test]
fn source_files_are_short() {
    on_every_source(|_, text| size_problems(text));
}

#[test]
fn unsafe_lives_in_the_device_crates_only() {
    on_every_source(|path, text| {
        let crate_dir = path.iter().next().unwrap().to_string_lossy();
        if UNSAFE_CRATES.contains(&crate_dir.as_ref()) { Vec::new() } else { unsafe_problems(path, text) }
    });
}

#[test]
fn nothing_is_left_to_do() {
    on_every_source(|_, text| unfinished_problems(text));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let root = root();
    let texts = files(&root, &|p| has_suffix(p, &TEXT) || p.ends_with(".ci/run"));
    let mut problems = Vec::new();
    for path in texts {
        let text = fs::read_to_string(&path).unwrap();
        problems.extend(
            machine_problems(&text)
                .into_iter()
                .map(|p| format!("{}: {p}", path.strip_prefix(&root).unwrap().display())),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn dependencies_are_documented_with_their_versions() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let problems =
        dependency_problems(&read("Cargo.toml"), &read("Cargo.lock"), &read("docs/dependencies.md"));
    assert!(problems.is_empty(), "docs/dependencies.md: {}", problems.join("\n"));
}

#[test]
fn libraries_that_are_only_compared_with_stay_out_of_the_workspace() {
    let locked = |path: &str, name: &str| {
        let lock = fs::read_to_string(root().join(path)).unwrap();
        lock.contains(&format!("name = \"{name}\"\n"))
    };
    for name in ["candle-core", "candle-nn", "faer", "gemm"] {
        assert!(locked("benches/peers/Cargo.lock", name), "{name}");
        assert!(!locked("Cargo.lock", name), "{name}");
    }
}

#[test]
fn each_rule_catches_its_fault() {
    assert_eq!(head_problems("use x;\n").len(), 1);
    assert_eq!(head_problems("//! What it is.\n").len(), 0);
    assert_eq!(size_problems(&"x\n".repeat(MAX_LINES + 1)).len(), 1);
    assert_eq!(size_problems(&"x\n".repeat(MAX_LINES)).len(), 0);
    let source = Path::new("gr00t-host/src/x.rs");
    assert_eq!(unsafe_problems(source, &format!("    {UNSAFE} {{ f() }}\n")).len(), 1);
    assert_eq!(unsafe_problems(source, "// no unsafe here\nlet unsafe_code = 1;\n").len(), 0);
    assert_eq!(unsafe_problems(source, &format!("    \"{UNSAFE}\",\n")).len(), 0);
    assert_eq!(unsafe_problems(source, &format!("f(\"a\\\"b\"); {UNSAFE} {{ g() }}\n")).len(), 1);
    let root_file = Path::new("gr00t-host/src/lib.rs");
    assert_eq!(unsafe_problems(root_file, "//! A crate.\n").len(), 1);
    assert_eq!(unsafe_problems(root_file, "//! A crate.\n#![forbid(unsafe_code)]\n").len(), 0);
    assert_eq!(unfinished_problems(&format!("    {}!()\n", "todo")).len(), 1);
    assert_eq!(machine_problems(&format!("see /{}/someone/notes\n", "home")).len(), 1);
    assert_eq!(machine_problems("see docs/home/notes\n").len(), 0);
}

#[test]
fn a_dependency_without_a_row_and_a_version_that_is_not_locked_are_found() {
    let manifest = "[workspace.dependencies]\nours = { path = \"ours\" }\n# why\na = \"1\"\nb = { version = \"2\" }\n\n[profile.dev]\nc = 1\n";
    let lock =
        "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
    let doc = |rows: &str| format!("| crate | version |\n|---|---|\n{rows}\n## Built twice\n| b | 1 |\n");
    let problems = |rows: &str| dependency_problems(manifest, lock, &doc(rows));
    assert_eq!(problems("| a | 1.2.3 | MIT |\n| b | 2.0.0 | MIT |\n"), Vec::<String>::new());
    assert_eq!(problems("| a | 1.2.3 | MIT |\n"), ["no row of b"]);
    assert_eq!(problems("| a | 1.2 | MIT |\n| b | 2.0.0 | MIT |\n"), ["a 1.2 is not in Cargo.lock"]);
    let more = "| a | 1.2.3 | MIT |\n| b | 2.0.0 | MIT |\n| c | 1 | MIT |\n";
    assert_eq!(problems(more), ["a row of c, which the workspace does not ask for"]);
}

/// What the first table of `doc` (name, version, …) lacks or says wrongly of the manifest's external dependencies.
fn dependency_problems(manifest: &str, lock: &str, doc: &str) -> Vec<String> {
    let (_, section) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let wanted: Vec<&str> = section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#') && !line.contains("path = "))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .collect();
    let rows: Vec<(&str, &str)> = doc
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter_map(|(name, rest)| Some((name, rest.split(" |").next()?)))
        .filter(|(name, _)| *name != "crate")
        .collect();
    let missing = wanted.iter().filter(|name| !rows.iter().any(|(row, _)| row == *name));
    let mut problems: Vec<String> = missing.map(|name| format!("no row of {name}")).collect();
    for (name, version) in rows {
        if !wanted.contains(&name) {
            problems.push(format!("a row of {name}, which the workspace does not ask for"));
        } else if !lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")) {
            problems.push(format!("{name} {version} is not in Cargo.lock"));
        }
    }
    problems
}

fn head_problems(text: &str) -> Vec<String> {
    let head = text.lines().next().unwrap_or_default();
    let says_something = head.strip_prefix("//!").is_some_and(|rest| !rest.trim().is_empty());
    if says_something { Vec::new() } else { vec!["does not start with a //! line".into()] }
}

fn size_problems(text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if lines > MAX_LINES { vec![format!("{lines} lines, at most {MAX_LINES}")] } else { Vec::new() }
}

fn unsafe_problems(path: &Path, text: &str) -> Vec<String> {
    let mut found: Vec<String> = code_lines(text)
        .filter(|(_, line)| words(&without_strings(line)).any(|word| word == UNSAFE))
        .map(|(number, _)| format!("line {number}: {UNSAFE} code outside {UNSAFE_CRATES:?}"))
        .collect();
    let crate_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    if crate_root && !text.lines().any(|l| l == "#![forbid(unsafe_code)]") {
        found.push("lacks #![forbid(unsafe_code)]".into());
    }
    found
}

fn unfinished_problems(text: &str) -> Vec<String> {
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    code_lines(text)
        .filter(|(_, line)| macros.iter().any(|m| line.contains(m.as_str())))
        .map(|(number, line)| format!("line {number}: {}", line.trim()))
        .collect()
}

/// Absolute folders of a person or a workplace.
fn machine_problems(text: &str) -> Vec<String> {
    let folders = ["home", "work", "root", "Users"].map(|name| format!("/{name}/"));
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for folder in &folders {
            let absolute = line.match_indices(folder.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-}>/*".contains(c))
            });
            if absolute {
                found.push(format!("line {}: a path under {folder}", number + 1));
            }
        }
    }
    found
}

/// Numbered lines without line comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let code = line.split("//").next().unwrap_or_default();
        (!code.trim().is_empty()).then_some((index + 1, code))
    })
}

/// The line without what stands between double quotes.
fn without_strings(line: &str) -> String {
    let plain = line.replace(r"\\", "").replace("\\\"", "").replace("'\"'", "");
    plain.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}
