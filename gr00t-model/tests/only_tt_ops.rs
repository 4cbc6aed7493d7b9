//! Model code computes with nothing but `tt-ops`: no other crate, no reading of tensors, no arithmetic on their values.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::path::{Path, PathBuf};

/// Where the model is written down.
const MODEL: [&str; 6] = ["vision", "llm", "adapter", "denoise", "transformer_block.rs", "mask.rs"];
/// Files of it that do something on the host by design, and what they may do beside.
const HOST_SIDE: [(&str, &[&str]); 6] = [
    // cuts images into patches: moves values, changes none
    ("vision/patches.rs", &["chunks_exact"]),
    // tables of angles
    ("llm/rope.rs", &["powf", "f32::cos", "f32::sin"]),
    ("denoise/time.rs", &[".exp()", ".ln()", ".cos()", ".sin()"]),
    // rows of the token embedding
    ("llm/embedding.rs", &["half::bf16"]),
    // time buckets, step width
    ("denoise/euler.rs", &[]),
    // where image tokens are
    ("llm/layout.rs", &[]),
];
/// Crates that model code may name.
const CRATES: [&str; 6] = ["std", "tt_ops", "gr00t_host", "crate", "super", "self"];
/// Signs of tensor values in the host's hands.
const FORBIDDEN: [&str; 18] = [
    "to_vector",
    ".read(",
    "chunks_exact",
    "chunks(",
    "mul_add",
    ".dot(",
    "powf",
    "powi",
    "sqrt",
    ".exp()",
    ".ln()",
    ".tanh",
    ".sin()",
    ".cos()",
    "f32::sin",
    "f32::cos",
    "half::",
    "unsafe",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_path_buf());
        return;
    }
    for entry in std::fs::read_dir(path).unwrap() {
        files(&entry.unwrap().path(), found);
    }
}

/// What is wrong with the code of `name`, tests left out.
fn problems(name: &str, text: &str) -> Vec<String> {
    let allowed = HOST_SIDE.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, allowed)| allowed);
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        for sign in FORBIDDEN {
            let excused = allowed.iter().any(|a| a.contains(sign) && line.contains(a));
            if line.contains(sign) && !excused {
                found.push(format!("{name}: {sign} in {line:?}"));
            }
        }
        let imported = line.strip_prefix("use ").or_else(|| line.strip_prefix("pub(crate) use "));
        let is_module = |root: &str| code.contains(&format!("mod {root};"));
        if let Some(root) = imported.and_then(|rest| rest.split([':', ';']).next()) {
            let excused = allowed.iter().any(|a| a.starts_with(root));
            if !CRATES.contains(&root) && !is_module(root) && !excused {
                found.push(format!("{name}: crate {root} in {line:?}"));
            }
        }
    }
    found
}

#[test]
fn model_code_calls_nothing_but_tt_ops() {
    let mut all = Vec::new();
    for part in MODEL {
        files(&source().join(part), &mut all);
    }
    assert!(all.len() >= 20, "{all:?}");
    let found: Vec<String> = all
        .iter()
        .flat_map(|path| {
            let name = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
            problems(&name, &std::fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_rule_catches_its_fault() {
    for fault in [
        "use ndarray::Array2;",
        "use half::bf16;",
        "let v = x.to_vector::<f32>()?;",
        "let y = v.iter().map(|x| x.tanh());",
        "for row in v.chunks_exact(4) {}",
    ] {
        assert!(!problems("denoise/dit.rs", fault).is_empty(), "{fault}");
    }
    for fine in ["use tt_ops::ops;", "// use ndarray", "mod layer;\nuse layer::Layer;"] {
        assert!(problems("denoise/dit.rs", fine).is_empty(), "{fine}");
    }
}
