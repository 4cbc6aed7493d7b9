//! What `cargo xtask bench` makes of results that were measured before: page, check, comparison.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .env("GR00T_TT_CACHE", "off")
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn passes(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

fn fails(arguments: &[&str], wanted: &str) {
    let output = bench(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} passed");
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    assert!(errors.contains(wanted), "no {wanted:?} in {errors}");
}

/// `file` with every time multiplied.
fn slower(file: &Path, to: &Path, by: f64) {
    let mut json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    for row in json["results"].as_array_mut().unwrap() {
        for figure in ["median", "busy"] {
            // CPU time is not known of short runs
            if let Some(value) = row[figure].as_f64() {
                row[figure] = (value * by).into();
            }
        }
    }
    fs::write(to, json.to_string()).unwrap();
}

#[test]
fn results_become_a_page_a_check_and_a_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (results, slow, page) = (path("a.json"), path("slow.json"), path("report"));
    let measure = ["--only", "predict/", "--reps", "12", "--json", &results];
    passes(&[&measure[..], &["--report", &page]].concat());
    let html = fs::read_to_string(Path::new(&page).join("index.html")).unwrap();
    assert!(html.contains("12 runs") && html.contains("of the roofline"), "{html}");

    slower(Path::new(&results), Path::new(&slow), 1.3);
    passes(&["--from", &results, "--check", &results]);
    passes(&["--from", &slow, "--check", &results, "--ratio", "1.31"]);
    passes(&["--from", &results, "--check", &slow]);
    fails(&["--from", &slow, "--check", &results], "1 of 1 results are more than 1.15 times worse");
    let compared = passes(&["--compare", &results, &slow]);
    assert!(compared.contains("1.300x"), "{compared}");
}

/// The committed page is that of the committed results; `cargo xtask bench --from … --report …` writes it.
#[test]
fn the_committed_report_is_that_of_the_committed_results() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/results");
    let dir = tempfile::tempdir().unwrap();
    passes(&[
        "--from",
        results.join("n1.5.json").to_str().unwrap(),
        "--report",
        dir.path().to_str().unwrap(),
    ]);
    let page = |folder: &Path| fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(
        page(&results.join("report")) == page(dir.path()),
        "benches/results/report/index.html is of other results"
    );
}

#[test]
fn files_that_are_no_results_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broken.json");
    fs::write(&file, "{\"machine\": 3}").unwrap();
    let file = file.to_str().unwrap();
    fails(&["--from", file, "--report", dir.path().to_str().unwrap()], "broken.json: invalid type");
    fails(&["--compare", file, "no/such.json"], "broken.json");
    fails(&["--readme", "no/such.json"], "no/such.json");
    fails(&["--compare", file], "2 values required");
}
